// Package openai speaks the OpenAI Realtime protocol (GA) to OpenAI, to Azure
// OpenAI and to any compatible server.
//
// The wire code is our own, based on github.com/coder/websocket: one JSON event in each text
// frame, read 2026-11-20 at developers.openai.com/api/docs/guides/realtime-websocket
// and checked against recorded sessions. The types of openai-go are used for what
// is sent; received events other than audio are decoded into small types of our own, since
// the SDK's union of all events is a 40 KB value. Audio takes a separate path in
// both directions (scan.go, audio.go) that allocates nothing.
//
// # Guarantees beyond package transport
//
//   - Usage comes before the ResponseDone of its response, and so do
//     AudioDone and every ToolCall of that response.
//   - A ToolCall is emitted only for a call that the provider has finished: a call that an
//     interruption cut off is never run.
//   - Interrupt, UserText and ActivityStart withdraw a Respond that still waits for
//     its turn, and so does a response that ended because the user began to speak:
//     with speech detection the provider answers the user's turn automatically.
//   - A Truncate beyond the audio that has arrived is reduced to that audio; a Truncate of
//     an item without audio is dropped.
//   - There is no GoAway: the provider announces Info.ExpiresAt and ends the connection
//     then (KindExpired). The caller decides whether to leave earlier.
//   - AudioPause sends the silence that ends the user's phrase, once per pause; the
//     offsets of SpeechStarted and SpeechStopped do not count it.
//   - Close sends no close frame: the provider only sees the connection end.
//   - Usage does not include the tokens that a transcription model reports for the user's
//     speech: that is another model with another price, and the audio is already counted
//     as the input of the response.
package openai
