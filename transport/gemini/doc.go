// Package gemini speaks Gemini Live (BidiGenerateContent) with its own wire code: the
// Developer API, its ephemeral tokens, and Vertex AI. It implements
// transport.Transport.
//
// Sources for the wire: ai.google.dev/api/live and the Live guides, read 2026-11-20,
// the types of google.golang.org/genai v1.77, and recorded sessions. Where recordings
// and documents differ, the code follows the recordings.
//
// # How the wire becomes events
//
// A response begins with the first content of a model turn (a part of any kind, a
// tool call, a transcription of speech) and ends with turnComplete. If a turn was
// interrupted and turnComplete does not follow within 3 s, or new content begins
// first, the response ends then. One response spans a whole exchange with tools.
//
// The wire has no names for spoken answers, so this package makes them: item_1, item_2
// and so on. An item begins with the first speech or transcription of a turn. A new
// one begins when the model speaks again after a tool that it waited for, or after
// its audio had ended. AudioDone comes once for each item that had audio: at
// generationComplete, interrupted, turnComplete, at a call of a tool that the model
// waits for, or before the next item. The user's utterances are user_1, user_2.
//
// Pieces of a transcript are joined unchanged, because leading spaces count. A transcript is
// Final at turnComplete, at interrupted, when the provider reports it finished, or when the
// next item begins; text that arrives even later is sent again as Final. A user's
// utterance that began after an interruption belongs to the following turn.
package gemini
