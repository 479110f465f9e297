package handoff

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"voicegw/protocol"

	"voicegw/internal/user"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/store"
)

// Ticket is a redeemed ticket: who speaks in its session, and what the session goes on with.
type Ticket struct {
	// SessionID is the id of the session and User the person who speaks. Both are set.
	SessionID string
	User      user.User
	// Vouched says that a trusted caller named the user. Scopes are what it has granted.
	Vouched bool
	Scopes  []string
	// Agent is the agent that the user speaks with; empty for the gateway's.
	Agent string
	// ConversationID is the conversation that goes on by voice; empty without one.
	ConversationID string
	// PendingRequest is answered first; Context is what was said before.
	PendingRequest, Context string
	// Inspect lets the client look inside the session, if it asks to.
	Inspect bool
	// Guarantor is the principal that made the ticket.
	Guarantor registry.Guarantor
	// Parent is what the ticket was made for, in the traces; it may be zero.
	Parent protocol.TraceParent
	// Over must be called once, when the session is over and was handed back. Nil does nothing.
	Over func()
	// WhenLost calls f, on any goroutine, when the session must end because another one of its
	// conversation may begin; at once if that is so already. Nil means that none can begin.
	WhenLost func(f func())
}

// Redeem uses a ticket up, for a page of that origin; origin is empty for a client that is not a
// page. The error wraps store.ErrUnknown, ErrOrigin, ErrUsed, ErrExpired or ErrBusy, or says that
// the ticket could not be looked up.
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
	above, _ := protocol.ParseTraceParent(t.Trace) // it is left out by gateways without traces
	out := Ticket{
		SessionID: t.SessionID, User: who, Vouched: t.Vouched, Scopes: t.Scopes, Agent: t.Agent, ConversationID: t.Conversation,
		PendingRequest: t.PendingRequest, Context: t.Context, Inspect: t.Inspect,
		Guarantor: registry.Guarantor{ID: t.Principal, Mark: t.Mark, Expires: t.PrincipalExpires},
		Parent:    above, Over: held.Release, WhenLost: held.WhenLost,
	}
	if out.ConversationID == "" {
		return out, nil
	}
	// The ticket is used up, so its user gets in even if the conversation cannot be read.
	if out.Context != "" {
		if notices, err := d.deliverNotices(ctx, t.Conversation, who); err == nil {
			out.Context = strings.Join(append([]string{out.Context}, notices...), "\n"+prompts.GatewayLine)
		}
		return out, nil
	}
	// It is read now, because the text side may have gone on since the ticket was made.
	if before, err := d.Enter(ctx, t.Conversation, who); err == nil {
		out.Context = before
	}
	return out, nil
}

// Enter lets a user go on with a conversation without a ticket, and returns what was said before.
// The error wraps store.ErrUnknown if the conversation is another user's.
func (d *Handoffs) Enter(ctx context.Context, id string, who user.User) (before string, err error) {
	_, err = d.deliverNotices(ctx, id, who)
	switch {
	case errors.Is(err, ErrTaken):
		return "", store.ErrUnknown // nobody learns that it exists
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
