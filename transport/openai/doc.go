// Package openai speaks the OpenAI Realtime protocol (GA) to OpenAI, to Azure
// OpenAI and to any server that is compatible with them.
//
// The wire is our own over github.com/coder/websocket: one JSON event in each text
// frame, read 2026-11-20 at developers.openai.com/api/docs/guides/realtime-websocket
// and checked against recorded sessions. The types of openai-go are used for what
// is sent and for events that are not audio, each decoded into its concrete type:
// the SDK's union of all events is a 40 KB value. Audio takes a path of its own in
// both directions (scan.go, audio.go) that allocates nothing.
//
// # What a caller may rely on beyond package transport
//
//   - Usage comes before the ResponseDone of the response it belongs to, and so do
//     AudioDone and every ToolCall of it.
//   - A ToolCall is given only for a call that the provider has finished: what an
//     interruption cut off is never run.
//   - Interrupt, UserText and ActivityStart withdraw a Respond that still waits for
//     its turn, and so does a response that ended because the user began to speak:
//     with speech detection the provider answers the user's turn by itself.
//   - A Truncate beyond the audio that has arrived is cut to it, one for an item
//     without audio is dropped.
//   - There is no GoAway: the provider gives Info.ExpiresAt and ends the connection
//     then (KindExpired). Going before that is the caller's decision.
//   - AudioPause sends the silence that ends the user's phrase, once per pause; the
//     offsets of SpeechStarted and SpeechStopped do not count it.
//   - Close does not say goodbye: the provider sees the connection end.
//   - The tokens that a transcription model reports for the user's speech are not in
//     Usage: it is another model with another price, and the audio is counted
//     already as the input of the response.
package openai
