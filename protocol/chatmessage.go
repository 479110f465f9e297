package protocol

import "encoding/json"

// The messages of a text conversation, on the stream of POST /v1/chat. Tools,
// confirmations, timeouts and errors are told in the messages that voice has.

// TextDelta is a piece of the agent's answer, as it comes.
type TextDelta struct {
	Header
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
}

// TextDone is the whole text of one answer of the agent's. There may be several in a
// turn, with tools between them.
type TextDone struct {
	Header
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
	// Cut says that it ended at the model's length limit.
	Cut bool `json:"cut,omitempty"`
	// Refused says that the model, or a filter, would not answer: the text says so, or ends
	// where the filter has ended it.
	Refused bool `json:"refused,omitempty"`
}

// VoiceSessionStart invites the client to go on by voice: it connects to URL with Ticket,
// once, until ExpiresAt. The names of its fields are those of the contract with text
// agents.
type VoiceSessionStart struct {
	Header
	SessionID      string `json:"sessionId"`
	PendingRequest string `json:"pendingRequest"`
	Ticket         string `json:"ticket"`
	URL            string `json:"url"`
	ExpiresAt      Time   `json:"expires_at"`
}

// UIImage shows an image that a tool has made. URL leads from the root of the gateway to
// the image, until ExpiresAt.
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

// Done is the last message of a stream, whose Status is DoneCompleted or DoneFailed.
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

// ToolCall asks the client to run a tool of its own, and to bring the answer with its next
// request. The turn ends with it.
type ToolCall struct {
	Header
	// CallID is what the answer names.
	CallID string          `json:"call_id"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
}

func (*ToolCall) serverType() string          { return "tool.call" }
func (*TextDelta) serverType() string         { return "text.delta" }
func (*TextDone) serverType() string          { return "text.done" }
func (*VoiceSessionStart) serverType() string { return "voice_session_start" }
func (*UIImage) serverType() string           { return "ui.image" }
func (*TurnUsage) serverType() string         { return "usage" }
func (*Done) serverType() string              { return "done" }
