// Package gemini is Gemini Live (BidiGenerateContent) from the provider's
// side: the half of the simulator that the official clients of the Gemini API
// and of Vertex AI can be pointed at.
//
// # What a connection goes through
//
// A request is upgraded whatever its key is (only a missing key is answered with
// HTTP 403); what is wrong with key, model or setup shows as a close frame after
// the first message, as it does at the provider. Then a session plays the model:
// it hears speech with the detector of package audio, on the clock of the
// audio itself, asks the scenario's dialogue what to say and do, and delivers it
// with the habits of the model that was named.
//
// # Habits
//
// Models differ where the protocol leaves them a choice: in how audio and
// transcript are put into messages, what announces a turn, when handles and
// usage come, how ids look, whether tools block. The table is in habits.go. It
// is made from recorded sessions; where recordings and documentation differ,
// the recordings stand.
//
// # Structure
//
// session is the model's side without a clock and without a socket: it is told
// what came and what time it is, and says with due when it wants to be called
// again. connection is the loop around it, in the goroutine of the HTTP request.
// wire.Conn reads, writes and commits the faults that need no knowledge of the
// protocol; the session commits the others. All state belongs to the
// connection's goroutine, but for the registry of resumption handles, the
// tokens and the cache of spoken lines, which have a lock each.
//
// # What is decided here, for want of a record
//
//   - A toolResponse for an id that was never given out, was cancelled or is
//     answered already is ignored, as in js-genai's recording of one. An id of
//     the provider's own form with the name of an open call is accepted all the
//     same, so that recorded sessions can be played against the simulator.
//   - On Vertex, results of calls that were never made are taken as input and
//     answered, as in js-genai's recording.
//   - Text input while a blocking call is open closes 1008 on 2.5, waits for the
//     results on 3.1, and cancels the calls on 3.8. Speech interrupts on all.
//   - clientContent {turnComplete:true} alone stops an answer. While the model
//     is idle it asks for a greeting, once.
//   - The words of refused ephemeral tokens are ours.
package gemini
