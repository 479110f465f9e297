// Package protocol implements the client protocol voicegw.v1: messages, codec, close codes, and the WebSocket
// connection on either side.
//
// A text frame is a JSON object with a "type". A binary frame is audio without a header: PCM16, signed little-endian,
// mono, at the rate agreed in session.start, a whole number of samples. The preceding audio.start names its item.
// docs/protocol.md describes the protocol for authors of clients.
package protocol

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ClientMessage is a message from a client in a text frame. The set is closed.
type ClientMessage interface{ clientType() string }

// Start opens the session. It is the first frame of a connection.
type Start struct {
	// Ticket is a single-use ticket made by POST /v1/sessions.
	Ticket   string `json:"ticket,omitempty"`
	Provider string `json:"provider,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Voice    string `json:"voice,omitempty"`
	// InputRate and OutputRate are in Hz; see InputRates and OutputRates.
	InputRate  int `json:"input_rate"`
	OutputRate int `json:"output_rate"`
	// TurnDetection is "server" (the default) or "client": the client reports speech with input.activity (push-to-talk).
	TurnDetection  string `json:"turn_detection,omitempty"`
	PendingRequest string `json:"pending_request,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	// Inspect requests messages about the internals: see InspectCall.
	Inspect bool `json:"inspect,omitempty"`
	// Resume resumes a session after a lost connection. InputRate and OutputRate must be those of the session.
	Resume *Resume     `json:"resume,omitempty"`
	Client *ClientInfo `json:"client,omitempty"`
	// TimeZone is the user's IANA time zone, such as Europe/Berlin; empty if unknown.
	TimeZone string `json:"time_zone,omitempty"`
	// Tools are run by the client; see ToolCall. With Resume they count only if another gateway continues the session.
	Tools []ClientTool `json:"tools,omitempty"`
	// Extra is set by connections of other protocols; nil for voicegw.v1.
	Extra *StartExtra `json:"-"`
}

// ClientTool declares a tool that the client runs.
type ClientTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Schema is the JSON Schema of the arguments; empty without arguments.
	Schema json.RawMessage `json:"schema,omitempty"`
	// ReadOnly means that calls have no side effects and may be repeated.
	ReadOnly bool `json:"read_only,omitempty"`
	// TimeoutMS limits a call; zero means 10 s.
	TimeoutMS int `json:"timeout_ms,omitempty"`
}

// Resume identifies the session to resume, and the data that the client has received.
type Resume struct {
	SessionID string `json:"session_id"`
	// Token is the secret resume_token of the latest session.started.
	Token string `json:"token"`
	// LastSeq is the highest received seq.
	LastSeq int64 `json:"last_seq"`
	// Audio is omitted if the client has no audio of the session.
	Audio *ResumeAudio `json:"audio,omitempty"`
	// Input is the user's speech that the client has buffered; may be nil.
	Input *ResumeInput `json:"input,omitempty"`
}

// ResumeInput is the audio that the client has kept, in ms on the input clock: see SessionStarted.InputMS.
type ResumeInput struct {
	FromMS int64 `json:"from_ms"`
	ToMS   int64 `json:"to_ms"`
}

// ResumeAudio is the model's speech that a client has received: everything before an item, and a part of the item.
type ResumeAudio struct {
	// ItemID is the newest item with received audio.
	ItemID string `json:"item_id"`
	// ReceivedMS is the received part of the item's audio, played or queued, in whole ms, rounded down.
	ReceivedMS int64 `json:"received_ms"`
}

// ClientInfo identifies the client program, for logs.
type ClientInfo struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	ID      string `json:"id,omitempty"`
}

// Who detects the end of the user's turn.
const (
	TurnDetectionServer = "server"
	TurnDetectionClient = "client"
)

// InputText is a typed user turn.
type InputText struct {
	Text string `json:"text"`
	ID   string `json:"id,omitempty"`
}

// InputImage is a still image from the user. It starts no turn: the model sees it with its next answer.
type InputImage struct {
	// MIME is image/jpeg or image/png.
	MIME string `json:"mime"`
	// Data is the file in base64, at most MaxImageBytes long.
	Data string `json:"data"`
}

// MaxImageBytes limits the file of an InputImage.
const MaxImageBytes = 44 << 10

// File decodes Data. The error explains the problem.
func (m *InputImage) File() ([]byte, error) {
	if n := base64.StdEncoding.DecodedLen(len(m.Data)); n > MaxImageBytes+2 {
		return nil, fmt.Errorf("it has about %d bytes; at most %d are accepted", n, MaxImageBytes)
	}
	file, err := base64.StdEncoding.DecodeString(m.Data)
	switch {
	case err != nil:
		return nil, errors.New("it is not base64 with padding")
	case len(file) > MaxImageBytes:
		return nil, fmt.Errorf("it has %d bytes; at most %d are accepted", len(file), MaxImageBytes)
	case http.DetectContentType(file) != m.MIME:
		return nil, fmt.Errorf("it does not begin as %s does", m.MIME)
	}
	return file, nil
}

// InputContext tells the model something about the page, without a turn, with its next answer. It is not spoken by the user.
type InputContext struct {
	// Text has at most MaxContextBytes.
	Text string `json:"text"`
}

// MaxContextBytes limits an InputContext, in bytes of UTF-8.
const MaxContextBytes = 4 << 10

// InputActivity reports the start or end of the user's speech (push-to-talk).
type InputActivity struct {
	Active bool `json:"active"`
}

// Interrupt reports that the user pressed stop.
type Interrupt struct{}

// Playback reports how much of an item the user has heard.
type Playback struct {
	ItemID string `json:"item_id"`
	// PlayedMS is a position in the item's audio.
	PlayedMS int64 `json:"played_ms"`
	// Done means that the rest of the item won't be played, because it ended or was flushed.
	Done bool `json:"done,omitempty"`
	// ReceivedMS is the received part of the item in whole ms, which the gateway may drop; zero if unreported.
	ReceivedMS int64 `json:"received_ms,omitempty"`
	// Seq is the highest received seq, up to which the gateway may drop messages; zero if unreported.
	Seq int64 `json:"seq,omitempty"`
}

// ConfirmationResolve answers a confirmation.request.
type ConfirmationResolve struct {
	Token    string `json:"token"`
	Approved bool   `json:"approved"`
}

// ToolResult answers a ToolCall. At most one of Result and Error is set; neither means an empty result.
type ToolResult struct {
	CallID string `json:"call_id"`
	// Result is any JSON, for the model.
	Result json.RawMessage `json:"result,omitempty"`
	Error  *ToolFailure    `json:"error,omitempty"`
}

// ToolFailure is the failure of a client's tool.
type ToolFailure struct {
	// Message is for the model.
	Message string `json:"message"`
	// Retryable means that the same call may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	// Partial means that something may have changed despite the failure, so the call isn't retried automatically.
	Partial bool `json:"partial,omitempty"`
}

// End reports that the user hung up.
type End struct{}

// Ping is answered by a Pong with the same T.
type Ping struct {
	T float64 `json:"t"`
	// Seq is that of Playback.
	Seq int64 `json:"seq,omitempty"`
}

func (*Start) clientType() string               { return "session.start" }
func (*InputText) clientType() string           { return "input.text" }
func (*InputImage) clientType() string          { return "input.image" }
func (*InputContext) clientType() string        { return "input.context" }
func (*InputActivity) clientType() string       { return "input.activity" }
func (*Interrupt) clientType() string           { return "interrupt" }
func (*Playback) clientType() string            { return "playback" }
func (*ConfirmationResolve) clientType() string { return "confirmation.resolve" }
func (*ToolResult) clientType() string          { return "tool.result" }
func (*End) clientType() string                 { return "session.end" }
func (*Ping) clientType() string                { return "ping" }

// InputRates are the supported sample rates of a client's audio, in Hz, ascending.
func InputRates() []int { return []int{8000, 16000, 24000, 44100, 48000} }

// OutputRates are the supported sample rates of the audio for a client.
func OutputRates() []int { return []int{8000, 16000, 24000, 48000} }

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
