// Package caller is one caller of a load run: it speaks recordings in real time by an
// absolute schedule, plays what comes back on a clock instead of a loudspeaker, follows a
// script, and tells a measure.Collector what it saw.
//
// What happens is decided by a conversation that has no clock, no socket and no
// goroutine: it is told the time and what arrived. [Caller.Call] lets it happen on a
// connection, with one goroutine that reads and one that writes.
package caller
