// Package traces tells a collector of OpenTelemetry what happened in a turn, and where its time went.
//
// It is told of each step of a voice session, and of each turn in text, by the packages session and
// chat; none of these is a frame of audio. When a turn is over, its spans are made, with the times that
// they had: only then it is known whether the turn is worth keeping. What is kept waits in a queue, which
// has a bound, for one goroutine that sends it. If the collector is slow, refuses or hangs, the queue
// fills and spans are dropped and counted; nobody waits for it.
//
// Spans are no longer than a turn, so that whoever samples behind the gateway need not wait for the end of
// a session. A session is seen by the attribute voicegw.session.id and by links: each turn is linked to the
// start of its session. What was said, and what tools were given, is told only with Options.Content.
package traces
