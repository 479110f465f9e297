package handoff

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
)

// Ticket is a redeemed ticket: the user of its session, and the conversation to continue.
type Ticket struct {
	// SessionID is the session's id, and User its user. Both are set.
	SessionID string
	User      user.User
	// Vouched: a trusted caller named the user. Scopes are the granted ones.
	Vouched bool
	Scopes  []string
	// Agent speaks with the user; empty for the default.
	Agent string
	// ConversationID is the conversation to continue; empty without one.
	ConversationID string
	// PendingRequest is answered first; Context is the conversation before.
	PendingRequest, Context string
	// Inspect allows the client to see the session's inner state on request.
	Inspect bool
	// Guarantor is the principal that made the ticket.
	Guarantor registry.Guarantor
	// Parent is the ticket's span in the traces; it may be zero.
	Parent protocol.TraceParent
	// Over must be called once, after the session's end and handback. It may be nil.
	Over func()
	// WhenLost calls f, on any goroutine, when the session must end because another one of its conversation may begin,
	// even if that is already so. Nil means that none can begin.
	WhenLost func(f func())
}

// Redeem uses a ticket for a page of that origin; empty for other clients. The error wraps store.ErrUnknown,
// ErrOrigin, ErrUsed, ErrExpired or ErrBusy, or reports that the ticket could not be looked up.
func (d *Handoffs) Redeem(ctx context.Context, secret, origin string) (Ticket, error) {
	t, held, err := d.voice.Redeem(ctx, secret, origin, time.Now())
	if err != nil {
		return Ticket{}, err
	}
	who, err := user.Stored(t.User)
	if err != nil {
		held.Release()
		return Ticket{}, fmt.Errorf("a ticket of an invalid user: %w", err)
	}
	above, _ := protocol.ParseTraceParent(t.Trace) // gateways without traces leave it out
	out := Ticket{
		SessionID: t.SessionID, User: who, Vouched: t.Vouched, Scopes: t.Scopes, Agent: t.Agent, ConversationID: t.Conversation,
		PendingRequest: t.PendingRequest, Context: t.Context, Inspect: t.Inspect,
		Guarantor: registry.Guarantor{ID: t.Principal, Mark: t.Mark, Expires: t.PrincipalExpires},
		Parent:    above, Over: held.Release, WhenLost: held.WhenLost,
	}
	if out.ConversationID == "" {
		return out, nil
	}
	// The ticket is used, so its user is admitted even if the conversation cannot be read.
	if out.Context != "" {
		if notices, err := d.deliverNotices(ctx, t.Conversation, who); err == nil {
			out.Context = strings.Join(append([]string{out.Context}, notices...), "\n"+prompts.GatewayLine)
		}
		return out, nil
	}
	// It is read now, because the text conversation may have continued since the ticket was made.
	if before, err := d.Enter(ctx, t.Conversation, who); err == nil {
		out.Context = before
	}
	return out, nil
}

// Enter lets a user continue a conversation without a ticket, and returns the conversation before. The error wraps
// store.ErrUnknown if the conversation belongs to another user.
func (d *Handoffs) Enter(ctx context.Context, id string, who user.User) (before string, err error) {
	_, err = d.deliverNotices(ctx, id, who)
	switch {
	case errors.Is(err, ErrTaken):
		return "", store.ErrUnknown // does not reveal that it exists
	case err != nil:
		return "", err
	}
	c, _, err := d.talks.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return "", nil // the conversation begins now
	case err != nil:
		return "", err
	case owned(c, who) != nil:
		return "", store.ErrUnknown
	}
	return c.Brief(ContextChars), nil
}

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
