package gateway

import (
	"slices"

	"voicegw/internal/conversation"
	"voicegw/protocol"
)

// conversationLines is a conversation in the API. Times are RFC 3339 in UTC with milliseconds.
type conversationLines struct {
	*conversation.Conversation
	Entries   []entryLine   `json:"entries"`
	Policy    *struct{}     `json:"policy,omitempty"` // nil: internal
	Past      *struct{}     `json:"past,omitempty"`   // nil: only for lists
	CreatedAt protocol.Time `json:"created_at"`
	UpdatedAt protocol.Time `json:"updated_at"`
}

type entryLine struct {
	conversation.Entry
	At protocol.Time `json:"at"`
}

func shownConversation(c *conversation.Conversation) conversationLines {
	lines := make([]entryLine, 0, len(c.Entries))
	for _, e := range c.Entries {
		e.Extra, e.Calls = nil, slices.Clone(e.Calls) // only for the model
		for i := range e.Calls {
			e.Calls[i].Extra = nil
		}
		lines = append(lines, entryLine{Entry: e, At: protocol.Time{Time: e.At}})
	}
	return conversationLines{Conversation: c, Entries: lines, CreatedAt: protocol.Time{Time: c.CreatedAt},
		UpdatedAt: protocol.Time{Time: c.UpdatedAt}}
}
