// Package gemini is Gemini Live (BidiGenerateContent) from the provider's
// side: the half of the simulator to which the official clients of the Gemini API
// and of Vertex AI can connect.
//
// # What happens on a connection
//
// A request is upgraded whatever its key is (only a missing key is answered with
// HTTP 403); an error in the key, model or setup is reported by a close frame after
// the first message, as the provider does. Then a session plays the model:
// it detects speech with the detector of package audio, on the clock of the
// audio itself, asks the scenario's dialogue what to say and do, and delivers it
// with the habits of the requested model.
//
// # Habits
//
// Models differ where the protocol leaves them a choice: in how audio and
// transcript are put into messages, what announces a turn, when handles and
// usage come, how ids look, whether tools block. The table is in habits.go. It
// is based on recorded sessions; where recordings and documentation differ,
// it follows the recordings.
//
// # Structure
//
// session is the model's side without a clock and without a socket: its owner passes in
// messages and the time, and due returns when it wants to be called
// again. connection is the loop around it, in the goroutine of the HTTP request.
// wire.Conn reads, writes and injects the faults that do not depend on the
// protocol; the session injects the others. All state belongs to the
// connection's goroutine, except the registry of resumption handles, the
// tokens and the cache of spoken lines, which have a lock each.
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
