// Package voice is the engine of every program here that holds a spoken conversation with a
// gateway: it speaks recordings in real time, types, interrupts, answers what tools ask, plays
// what comes back on a clock instead of a loudspeaker and reports what was heard.
//
// A [Conversation] decides what to say and when. It has no clock, no socket and no
// goroutine: it is told the time and what came, and says what to send. [Run] lets one happen
// on a connection. What it means for a program is the program's: an [Observer] is told of
// everything.
package voice
