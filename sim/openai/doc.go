// Package openai simulates OpenAI's Realtime API (GA): the WebSocket at /v1/realtime, and Azure's at
// /openai/v1/realtime.
//
// Event names, key sets, order, error texts and token rates follow the provider's documentation
// (developers.openai.com/api/docs/guides/realtime-websocket and the API reference of the realtime events, read
// 2026-11-20), the types of the SDKs of that day, and recorded sessions; a comment marks unknown behaviour.
//
// One goroutine per connection owns the session: it handles the client's events in order and runs the tasks that are
// due without input (outgoing audio, transcripts, expiry).
//
// Not simulated: transcription sessions (?intent=transcription), sideband connections (?call_id=), WebRTC, SIP. MCP
// tools are accepted and ignored.
package openai
