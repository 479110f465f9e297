// Package caller is one caller of a load run. It reads a [Script], speaks recordings in real time by an
// absolute schedule, plays the answers on a clock instead of a loudspeaker, and reports its measurements to
// a measure.Collector.
//
// A conversation without clock, socket or goroutine decides: it gets the time and each arrival as input.
// [Caller.Call] runs it on a connection, with one goroutine that reads and one that writes.
//
// A script is a load and a regression test in one file; docs/load.md documents every key. [ParseScript]
// rejects unknown keys and reports all problems at once, each with its line.
package caller
