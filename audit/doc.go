// Package audit keeps the record of what tools did: one JSON object for each call,
// and for what belongs to it (a confirmation's outcome, a refused intent). The
// orchestrator makes the records, for voice and text alike; this package takes them
// without making anybody wait and writes them to a stream and to JSON lines.
//
// What was said, transcripts and audio never stand in a record, and arguments only
// as configured.
package audit
