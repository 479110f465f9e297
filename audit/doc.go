// Package audit keeps the record of what tools did: one JSON object for each call,
// and for what belongs to it (a confirmation's outcome, a refused intent). The
// orchestrator makes the records, for voice and text alike; this package takes them
// without making anybody wait and writes them to a stream and to JSON lines.
//
// What was said, transcripts and audio never stand in a record, and arguments only
// as configured.
//
// A [Log] has one goroutine for each place that it writes to, so that a store that
// is away holds up no file, and the file no store. What waits for a place is bounded;
// when it is full the newest record is dropped for that place, counted and logged. A
// place that fails is tried again, with growing pauses, until it works or the Log is
// closed and the time for that is over.
//
// A [File] is JSON lines that rotate. [Read], [ReadFiles] and [Follow] read them
// again, also while they are written.
package audit
