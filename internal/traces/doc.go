// Package traces sends spans of turns to an OpenTelemetry collector.
//
// Packages session and chat report each step of a voice session and each text turn. When a turn is over, this package
// decides whether to keep it and makes its spans with their original times. The SDK's batch processor sends them. If
// the collector is slow, refuses or hangs, the queue fills, and spans are dropped and counted; sessions never wait.
//
// No span is longer than a turn, so a collector that samples need not wait for the end of a session. The attribute
// voicegw.session.id and links connect the turns of a session. Spans hold words and tool arguments only with
// Options.Content.
package traces
