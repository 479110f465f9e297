// Package openai is OpenAI's Realtime API (GA) seen from the provider's side,
// for the simulator: the WebSocket at /v1/realtime, Azure's at
// /openai/v1/realtime, and POST …/realtime/client_secrets.
//
// Event names, key sets, order, error texts and token rates follow the provider's
// documentation (developers.openai.com/api/docs/guides/realtime-websocket and the API
// reference of the realtime events, read 2026-11-20), the types of the SDKs of that
// day, and recorded sessions; where nothing is known a comment says so.
//
// One goroutine per connection owns the whole session: it takes the client's
// events in order, and what happens by itself (audio that leaves, transcripts,
// expiry) is due at times that it waits for.
//
// Not simulated: transcription sessions (?intent=transcription), sideband
// connections (?call_id=), WebRTC, SIP. MCP tools are listed and never called.
package openai
