package protocol

import "encoding/json"

// The messages of a text conversation, in the stream of POST /v1/chat. Tools,
// confirmations, timeouts and errors use the same messages as voice.

// TextDelta is the next piece of the agent's answer.
type TextDelta struct {
	Header
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
}

// TextDone is the whole text of one answer by the agent. A turn may contain several,
// with tools between them.
type TextDone struct {
	Header
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
	// Cut means that the answer ended at the model's length limit.
	Cut bool `json:"cut,omitempty"`
	// Refused means that the model or a filter declined to answer: the text explains it, or
	// ends where the filter stopped it.
	Refused bool `json:"refused,omitempty"`
}

// VoiceSessionStart invites the client to continue by voice: the client connects to URL
// with Ticket, which works once and until ExpiresAt. The field names are those of the
// contract with text agents.
type VoiceSessionStart struct {
	Header
	SessionID      string `json:"sessionId"`
	PendingRequest string `json:"pendingRequest"`
	Ticket         string `json:"ticket"`
	URL            string `json:"url"`
	ExpiresAt      Time   `json:"expires_at"`
}

// UIImage shows an image that a tool has made. URL is the image's path on the gateway and
// is valid until ExpiresAt.
type UIImage struct {
	Header
	ID     string `json:"id"`
	URL    string `json:"url"`
	Prompt string `json:"prompt"`
	// Width and Height are in pixels.
	Width     int  `json:"width"`
	Height    int  `json:"height"`
	ExpiresAt Time `json:"expires_at"`
}

// TurnUsage counts the tokens of the whole turn.
type TurnUsage struct {
	Header
	Usage
}

// Done is the last message of a stream. Its Status is DoneCompleted or DoneFailed.
type Done struct {
	Header
	ConversationID string `json:"conversation_id"`
	Status         string `json:"status"`
}

// The values of Done.Status.
const (
	DoneCompleted = "completed"
	DoneFailed    = "failed"
)

// ToolCall asks the client to run one of its own tools. By text it ends the turn, and the client sends the
// answer with its next request; by voice it sends a ToolResult.
type ToolCall struct {
	Header
	// CallID identifies the call in the client's answer.
	CallID string          `json:"call_id"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
	// TimeoutMS is how long the gateway still waits, by voice.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Again means that the client was asked before, on a connection that is gone: the call may be under way
	// there, or done.
	Again bool `json:"again,omitempty"`
}

func (*ToolCall) serverType() string          { return "tool.call" }
func (*TextDelta) serverType() string         { return "text.delta" }
func (*TextDone) serverType() string          { return "text.done" }
func (*VoiceSessionStart) serverType() string { return "voice_session_start" }
func (*UIImage) serverType() string           { return "ui.image" }
func (*TurnUsage) serverType() string         { return "usage" }
func (*Done) serverType() string              { return "done" }
