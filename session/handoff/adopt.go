package handoff

import (
	"context"
	"errors"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/store"
)

// Adopted is the conversation of a session that another node ran before.
type Adopted struct {
	// Entries are the session's, in the order of time.
	Entries []conversation.Entry
	// Over and WhenLost are those of a Ticket.
	Over     func()
	WhenLost func(f func())
}

// Adopt makes this node the writer of a session into its conversation, at that epoch of the session. The error wraps
// store.ErrFenced if a later owner exists, store.ErrVoiceActive if another session of the conversation runs, ErrTaken,
// or another error of the store.
func (d *Handoffs) Adopt(ctx context.Context, session string, epoch uint64, id string, who user.User) (Adopted, error) {
	held, err := d.voice.Adopt(ctx, session, epoch, who.String(), id)
	if err != nil {
		return Adopted{}, err
	}
	a := Adopted{Over: held.Release, WhenLost: held.WhenLost}
	c, _, err := d.talks.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return a, nil // no entry was written yet
	case err == nil:
		err = owned(c, who)
	}
	if err != nil {
		held.Release()
		return Adopted{}, err
	}
	for _, e := range c.Entries {
		if e.SessionID == session {
			a.Entries = append(a.Entries, e)
		}
	}
	return a, nil
}
