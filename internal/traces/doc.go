// Package traces sends spans of turns to an OpenTelemetry collector.
//
// Packages session and chat report each step of a voice session and each turn in text. When a turn is over, this package
// decides whether to keep it and makes its spans with the times that they had. The SDK's batch processor
// sends them. If the collector is slow, refuses or hangs, the queue fills, and spans are dropped and counted; sessions never wait.
//
// Spans are no longer than a turn, so a collector that samples need not wait for the end of a session. The
// attribute voicegw.session.id and links connect the turns of a session. Only with Options.Content do spans hold words and
// tool arguments.
package traces
