// Package talk holds a conversation with a gateway as a program with a microphone and a loudspeaker
// would: it speaks recordings in real time, listens, plays the answers on a clock instead of a
// loudspeaker, reports what was heard, interrupts if asked to, and measures how long everything took.
//
// [Run] does all of that. A conversation without clock, socket and goroutine decides what happens:
// it gets the time and what has arrived, and returns what to send.
package talk
