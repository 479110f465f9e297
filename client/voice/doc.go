// Package voice is the engine of every program here that holds a spoken conversation with a gateway:
// it speaks recordings in real time, types, interrupts, answers tools' questions, plays the answers on
// a clock instead of a loudspeaker and reports what was heard.
//
// A [Conversation] decides what to say and when. It has no clock, no socket and no goroutine: it gets
// the time and what has arrived, and returns what to send. [Run] carries one out on a connection. An
// [Observer] is told of everything; what that means is up to the program.
package voice
