// Package talk holds a conversation with a gateway as a program with a microphone and a loudspeaker would: it speaks
// recordings in real time, plays the answers on a clock instead of a loudspeaker, interrupts if asked to, and
// measures the response times. [Run] does this for voice, [Chat] for text.
package talk
