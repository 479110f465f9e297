// Package audit keeps the record of what tools did: one JSON object for each call, and one for
// each event that belongs to it (a confirmation's outcome, a refused intent). Voice and text
// make the same records; this package accepts them without making anybody wait and writes them
// to a stream and to JSON lines.
//
// A record never holds transcripts or audio, and arguments only as configured.
//
// A [Log] has one goroutine for each place that it writes to, so that an unreachable store
// delays no file, and a slow file delays no store. The queue of each place is bounded; when it
// is full, the newest record is dropped for that place, counted and logged. A place that fails
// is tried again, with growing pauses, until it works or the Log is closed and the time for
// that is over.
//
// A [File] is JSON lines that rotate. [Read], [ReadFiles] and [Follow] read them again, also
// while they are being written.
package audit
