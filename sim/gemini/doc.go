// Package gemini is Gemini Live (BidiGenerateContent) from the provider's side, for clients of the Gemini API and of
// Vertex AI.
//
// session is the model's side without a clock and without a socket; connection drives it in the goroutine of the HTTP
// request, which owns all state except the resumption handles, the tokens and the spoken lines, which have a lock each.
//
// # Behaviour decided here, for lack of recordings
//
//   - A toolResponse for an id that was never given out, was cancelled or is
//     answered already is ignored, as in js-genai's recording of one. An id of
//     the provider's own form with the name of an open call is accepted
//     anyway, so that recorded sessions can be played against the simulator.
//     A session that was resumed closes 1008 over an id that its handle does
//     not know. Clients report that close, but not its reason: ours is that of
//     other input that comes out of turn.
//   - A handle is a snapshot: the history and the open calls at its issue. A
//     call that was open then is open after a resume, and its result is spoken
//     about in a turn of its own; the answer that was being spoken is lost.
//   - On Vertex, results of calls that were never made are treated as input and
//     answered, as in js-genai's recording.
//   - Text input while a blocking call is open closes 1008 on 2.5, waits for the
//     results on 3.1, and cancels the calls on 3.8. Speech interrupts on all.
//   - clientContent {turnComplete:true} alone stops an answer. While the model
//     is idle it asks for a greeting, once.
package gemini
