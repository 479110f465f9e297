package handoff

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
)

// Secret is a client secret: it admits sessions of one conversation until it expires, one at a time.
type Secret struct {
	store.ClientSecret
	// User is the user of its sessions, and Agent their agent; Agent may be empty.
	User  user.User
	Agent string
	// ConversationID is the conversation that its sessions continue.
	ConversationID string
	// Guarantor is the principal that made it.
	Guarantor registry.Guarantor
	// ExpiresAt is when it expires; a running session continues.
	ExpiresAt time.Time
	// Redeem begins a session. The error wraps store.ErrBusy while another one of the conversation runs.
	Redeem func(ctx context.Context) (Ticket, error)
}

// MakeSecret makes a client secret that expires at the given time. The errors are those of Invite, without
// store.ErrVoiceActive.
func (d *Handoffs) MakeSecret(ctx context.Context, in Invitation, c store.ClientSecret, expires time.Time) (secret string, err error) {
	id := cmp.Or(in.ConversationID, conversation.NewID())
	fresh, err := d.begin(ctx, id, in)
	if err != nil {
		return "", err
	}
	t := in.ticket(id, fresh)
	t.SessionID, t.ClientSecret, t.ExpiresAt = newSessionID(), &c, expires
	t.Trace = protocol.TraceParentFrom(ctx).String()
	return d.tickets.Create(ctx, t)
}

// Secret looks up a client secret, for a page of that origin; empty for other clients. The error wraps
// store.ErrUnknown, ErrOrigin or ErrExpired, or reports that it could not be looked up.
func (d *Handoffs) Secret(ctx context.Context, secret, origin string) (*Secret, error) {
	t, err := d.tickets.Secret(ctx, secret, origin, time.Now())
	if err != nil {
		return nil, err
	}
	who, err := user.Stored(t.User)
	if err != nil {
		return nil, fmt.Errorf("a client secret of an invalid user: %w", err)
	}
	return &Secret{
		ClientSecret: *t.ClientSecret, User: who, Agent: t.Agent, ConversationID: t.Conversation, ExpiresAt: t.ExpiresAt,
		Guarantor: registry.Guarantor{ID: t.Principal, Mark: t.Mark, Expires: t.PrincipalExpires},
		Redeem: func(ctx context.Context) (Ticket, error) {
			t.SessionID = newSessionID()
			held, err := d.voice.Begin(ctx, t.SessionID, t.User, t.Conversation)
			if errors.Is(err, store.ErrVoiceActive) {
				err = fmt.Errorf("%w: %w", store.ErrBusy, err)
			}
			if err != nil {
				return Ticket{}, err
			}
			return d.redeemed(ctx, t, held)
		},
	}, nil
}

func newSessionID() string { return "voice-" + strings.ToLower(rand.Text()) }
