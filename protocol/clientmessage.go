package protocol

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ClientMessage is a message that a client may send in a text frame. The set is closed.
type ClientMessage interface{ clientType() string }

// Start opens the session: the first frame of a connection.
type Start struct {
	// Ticket is a single-use ticket made by POST /v1/sessions.
	Ticket   string `json:"ticket,omitempty"`
	Provider string `json:"provider,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Voice    string `json:"voice,omitempty"`
	// InputRate and OutputRate are in Hz; see InputRates and OutputRates.
	InputRate  int `json:"input_rate"`
	OutputRate int `json:"output_rate"`
	// TurnDetection is "server" (the default: the model detects when the user stops)
	// or "client" (the client reports it with input.activity: push-to-talk).
	TurnDetection  string `json:"turn_detection,omitempty"`
	PendingRequest string `json:"pending_request,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	// Inspect requests the messages that show what happens inside: see InspectCall.
	Inspect bool `json:"inspect,omitempty"`
	// Resume comes back to a session whose connection was lost. InputRate and OutputRate must be
	// those of the session.
	Resume *Resume     `json:"resume,omitempty"`
	Client *ClientInfo `json:"client,omitempty"`
	// TimeZone is the IANA name of the user's time zone, such as Europe/Berlin; empty if it is not known.
	TimeZone string `json:"time_zone,omitempty"`
	// Tools are tools that the client runs; see ToolCall. With Resume they count only if another gateway
	// goes on with the session.
	Tools []ClientTool `json:"tools,omitempty"`
}

// ClientTool declares a tool that the client runs.
type ClientTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Schema is the JSON Schema of its arguments; empty if it takes none.
	Schema json.RawMessage `json:"schema,omitempty"`
	// ReadOnly says that a call changes nothing, so that it may run twice.
	ReadOnly bool `json:"read_only,omitempty"`
	// TimeoutMS is how long a call may take; zero means 10 s.
	TimeoutMS int `json:"timeout_ms,omitempty"`
}

// Resume names the session that the client comes back to, and how much of it the client has.
type Resume struct {
	SessionID string `json:"session_id"`
	// Token is the resume_token of the session's latest session.started. It is a secret.
	Token string `json:"token"`
	// LastSeq is the highest seq that the client has received.
	LastSeq int64 `json:"last_seq"`
	// Audio is missing if the client has no audio of the session any more.
	Audio *ResumeAudio `json:"audio,omitempty"`
	// Input is what the client has kept of the user's speech; nil if it keeps nothing.
	Input *ResumeInput `json:"input,omitempty"`
}

// ResumeInput is a piece of the audio that the client has recorded, sent or not, in ms on the session's
// input clock: see SessionStarted.InputMS. It ends with what was recorded last.
type ResumeInput struct {
	FromMS int64 `json:"from_ms"`
	ToMS   int64 `json:"to_ms"`
}

// ResumeAudio is how much of the model's speech a client has: everything before an item, and a
// part of the item.
type ResumeAudio struct {
	// ItemID is the newest item of which the client has received audio.
	ItemID string `json:"item_id"`
	// ReceivedMS is how much of the item the client has, played or still queued, in whole ms of the
	// item's audio, rounded down.
	ReceivedMS int64 `json:"received_ms"`
}

// ClientInfo identifies the client program, for logs.
type ClientInfo struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	ID      string `json:"id,omitempty"`
}

// The values of Start.TurnDetection.
const (
	TurnDetectionServer = "server"
	TurnDetectionClient = "client"
)

// InputText is a typed user turn.
type InputText struct {
	Text string `json:"text"`
	ID   string `json:"id,omitempty"`
}

// InputImage is a still image that the user shows. It begins no turn: the model sees it when it answers the
// next time.
type InputImage struct {
	// MIME is image/jpeg or image/png.
	MIME string `json:"mime"`
	// Data is the file in base64, of at most MaxImageBytes.
	Data string `json:"data"`
}

// MaxImageBytes is the largest file of an InputImage.
const MaxImageBytes = 44 << 10

// File returns the file that Data holds. The error says what is wrong with it.
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

// InputContext is what the page tells the model without a turn, such as what the user is looking at: the model knows
// it when it answers the next time. It is nothing that the user has said.
type InputContext struct {
	// Text has at most MaxContextBytes.
	Text string `json:"text"`
}

// MaxContextBytes is the longest text of an InputContext, in bytes of UTF-8.
const MaxContextBytes = 4 << 10

// InputActivity reports that the user's speech starts or ends (push-to-talk).
type InputActivity struct {
	Active bool `json:"active"`
}

// Interrupt reports that the user pressed stop.
type Interrupt struct{}

// Playback reports how much of an item the user has heard.
type Playback struct {
	ItemID string `json:"item_id"`
	// PlayedMS is in ms of that item's audio.
	PlayedMS int64 `json:"played_ms"`
	// Done means that nothing more of the item will be played, because it ended or was flushed.
	Done bool `json:"done,omitempty"`
	// ReceivedMS is how much of the item the client has received, in whole ms, rounded down; zero
	// if the client does not say. The gateway need not keep that audio any longer.
	ReceivedMS int64 `json:"received_ms,omitempty"`
	// Seq is the highest seq that the client has received; zero if it does not say. The gateway need
	// not keep these messages any longer.
	Seq int64 `json:"seq,omitempty"`
}

// ConfirmationResolve is the user's answer to a confirmation.request.
type ConfirmationResolve struct {
	Token    string `json:"token"`
	Approved bool   `json:"approved"`
}

// ToolResult answers a ToolCall. Exactly one of Result and Error is set; neither means that the tool has
// nothing to say.
type ToolResult struct {
	CallID string `json:"call_id"`
	// Result is the answer for the model: any JSON.
	Result json.RawMessage `json:"result,omitempty"`
	Error  *ToolFailure    `json:"error,omitempty"`
}

// ToolFailure says that a call of a client's tool has failed.
type ToolFailure struct {
	// Message is for the model.
	Message string `json:"message"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	// Partial says that something may have been changed all the same: the call is not run again by itself.
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

// InputRates are the sample rates in Hz that a client may choose for the audio it sends,
// ascending.
func InputRates() []int { return []int{8000, 16000, 24000, 44100, 48000} }

// OutputRates is like InputRates, for the audio that a client plays.
func OutputRates() []int { return []int{8000, 16000, 24000, 48000} }
