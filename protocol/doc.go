// Package protocol implements the client protocol voicegw.v1: messages, codec, close codes, and the WebSocket
// connection on either side.
//
// A text frame is a JSON object with a "type". A binary frame is audio without a header: PCM16, signed little-endian,
// mono, at the rate agreed in session.start, a whole number of samples. The preceding audio.start names its item.
// docs/protocol.md describes the protocol for authors of clients.
package protocol

// Subprotocol is the WebSocket subprotocol.
const Subprotocol = "voicegw.v1"

// Limits of the protocol.
const (
	// MaxMessageBytes is the default limit of a client's frame; a larger one closes the connection with 1009.
	MaxMessageBytes = 64 << 10
	// MaxFrameMS limits an audio frame.
	MaxFrameMS = 500
	// MaxNameChars limits a client's ids and names, in characters. Package user has the limit of client.id.
	MaxNameChars = 256
	// MaxTextChars limits a typed turn or pending request, in characters.
	MaxTextChars = 8000
	// MaxTicketBytes limits a ticket.
	MaxTicketBytes = 256
)
