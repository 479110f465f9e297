package protocol

import "encoding/json"

// Messages of a text conversation, streamed by POST /v1/chat. Tools, confirmations, timeouts and errors use the same
// messages as voice.

// TextDelta is the next piece of the agent's answer.
type TextDelta struct {
	Header
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
}

// TextDone is the complete text of an answer. A turn may contain several, with tools between them.
type TextDone struct {
	Header
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
	// Cut means that the answer ended at the model's length limit.
	Cut bool `json:"cut,omitempty"`
	// Refused means that the model or a filter declined to answer. The text explains it, or ends where the filter
	// stopped it.
	Refused bool `json:"refused,omitempty"`
}

// VoiceSessionStart invites the client to continue by voice: it connects to URL with Ticket, which works once until
// ExpiresAt.
type VoiceSessionStart struct {
	Header
	SessionID      string `json:"sessionId"`
	PendingRequest string `json:"pendingRequest"`
	Ticket         string `json:"ticket"`
	URL            string `json:"url"`
	ExpiresAt      Time   `json:"expires_at"`
}

// UIImage shows a tool's image. URL is the image's path on the gateway, valid until ExpiresAt.
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

// Values of a final status.
const (
	DoneCompleted = "completed"
	DoneFailed    = "failed"
)

// ToolCall asks the client to run one of its own tools. In text it ends the turn, and the client sends the result
// with its next request; by voice the client sends a ToolResult.
type ToolCall struct {
	Header
	// CallID identifies the call in the client's result.
	CallID string          `json:"call_id"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
	// TimeoutMS is how long the gateway waits, by voice.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Again means that the client got the call on an earlier connection: it may be running or done.
	Again bool `json:"again,omitempty"`
}

func (*ToolCall) serverType() string          { return "tool.call" }
func (*TextDelta) serverType() string         { return "text.delta" }
func (*TextDone) serverType() string          { return "text.done" }
func (*VoiceSessionStart) serverType() string { return "voice_session_start" }
func (*UIImage) serverType() string           { return "ui.image" }
func (*TurnUsage) serverType() string         { return "usage" }
func (*Done) serverType() string              { return "done" }
