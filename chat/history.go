package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/conversation"
	"voicegw/store"
)

// keepHistory stores what was said in a conversation that its client keeps, so that a voice
// session goes on with it and hands it back. What instructs the model was not said. A
// conversation that is kept here has it already, and one that was kept by an earlier try of
// the message too.
func (t *turn) keepHistory(ctx context.Context) error {
	if t.req.History == nil {
		return nil
	}
	now := time.Now()
	c := conversation.New(t.conv.ID, t.req.User.String(), t.a.opts.Name, now)
	said := append([]Message{}, t.req.History...)
	if t.req.says() {
		said = append(said, Message{Role: RoleUser, Text: t.req.Message, Parts: t.req.Parts})
	}
	var entries []conversation.Entry
	turn := 0
	for i, m := range said {
		e := conversation.Entry{At: now.Add(time.Duration(i-len(said)) * time.Millisecond), Side: conversation.SideText, Role: conversation.RoleUser, Text: inWords(m.Text, m.Parts)}
		switch m.Role {
		case RoleUser:
			turn++
		case RoleAssistant:
			e.Role = conversation.RoleAssistant
		default:
			continue
		}
		if e.Text == "" {
			continue
		}
		e.Turn = max(turn, 1)
		entries = append(entries, e)
	}
	c.Append(now, entries...)
	_, err := t.a.opts.Conversations.Save(ctx, c, 0)
	if err != nil && !errors.Is(err, store.ErrChanged) {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}
