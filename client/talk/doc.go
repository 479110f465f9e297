// Package talk holds a conversation with a gateway as a program would that has a
// microphone and a loudspeaker: it speaks recordings in real time, listens, plays
// what comes back on a clock instead of a loudspeaker, reports what was heard,
// interrupts if asked to, and measures how long everything took.
//
// [Run] does the whole. What happens is decided by a conversation that has no
// clock, no socket and no goroutine: it is told the time and what arrived, and
// answers with what to send.
package talk
