// Package audit records the actions of tools: one JSON object for each call, and one for each related event, such as
// the outcome of a confirmation or a refused intent. Voice and text make the same records. This package writes them to
// a stream and to JSON lines; its callers never wait.
//
// A record never holds transcripts or audio, and arguments only as configured.
//
// A [Log] has one goroutine for each sink, so that an unreachable store does not delay the file, nor a slow file the
// store. The queue of each sink is bounded; when it is full, the Log drops the newest record for that sink, counts it
// and logs it. After a failure it tries again, with growing pauses, until Close gives up.
//
// A [File] rotates its JSON lines. [Read], [ReadFiles] and [Follow] read them, also while a File writes.
package audit
