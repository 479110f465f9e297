// Package protocol is the client protocol voicegw.v1: its messages, their codec,
// its close codes, and the WebSocket connection on either side of it.
//
// A text frame is one JSON object with a "type"; a binary frame is only
// audio: PCM16, signed little-endian, mono, at the rate agreed in
// session.start, a whole number of samples. Audio has no header: the audio.start
// before it names the item it belongs to. docs/protocol.md describes the protocol to
// authors of clients.
package protocol

// Subprotocol is the WebSocket subprotocol of this protocol.
const Subprotocol = "voicegw.v1"

// The limits of the protocol.
const (
	// MaxMessageBytes is the largest frame that a client may send unless the operator
	// has configured another limit; a larger one is closed with 1009.
	MaxMessageBytes = 64 << 10
	// MaxFrameMS is the longest audio frame that is accepted.
	MaxFrameMS = 500
	// MaxNameChars is the length limit of an id or name that a client sends (an item's,
	// a text's or its own), in characters. The limit of client.id is in package user.
	MaxNameChars = 256
	// MaxTextChars is the longest typed turn or pending request, in characters.
	MaxTextChars = 8000
	// MaxTicketBytes is the longest ticket.
	MaxTicketBytes = 256
)
