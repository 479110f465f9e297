// Package caller is one caller of a load run. It reads a [Script], speaks recordings in real time on an absolute
// schedule, plays the answers on a clock instead of a loudspeaker, and reports its measurements to a
// report.Collector.
//
// The conversation itself is pure: it has no clock, socket or goroutine, and gets the time and each arrival as input.
// [Caller.Call] runs it on a connection, with one goroutine that reads and one that writes.
//
// A script is both a load test and a regression test; docs/load.md documents its keys. [ParseScript] rejects unknown
// keys and reports all problems at once, each with its line.
package caller
