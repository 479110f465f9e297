package store

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"voicegw/internal/logging"
	"voicegw/internal/origin"
)

const (
	// secretBytes is the size of a ticket's random secret: 256 bits.
	secretBytes = 32
	// mostTickets bounds the remembered tickets: those of the last hour plus Options.TicketLife.
	mostTickets = 100_000
)

// Ticket admits one client to one voice session, once.
type Ticket struct {
	// SessionID is the session's ID; not secret.
	SessionID string `json:"session_id"`
	// User is the speaker, Agent the agent that answers; Agent may be empty.
	User  string `json:"user"`
	Agent string `json:"agent,omitempty"`
	// Vouched means that a trusted caller named the user; Scopes are granted by that caller.
	Vouched bool     `json:"vouched,omitempty"`
	Scopes  []string `json:"scopes,omitempty"`
	// Conversation is the one to continue; empty for a new one.
	Conversation string `json:"conversation,omitempty"`
	// PendingRequest is the request to answer first; Context is the earlier conversation.
	PendingRequest string `json:"pending_request,omitempty"`
	Context        string `json:"context,omitempty"`
	// Origin is the only origin whose pages may use it, such as "https://example.org"; empty for any client.
	Origin string `json:"origin,omitempty"`
	// Inspect permits the client to inspect its session.
	Inspect bool `json:"inspect,omitempty"`
	// Principal is the ID of the principal that made it, Mark distinguishes different credentials of that ID
	// (auth.Principal), and PrincipalExpires is when they end. Each may be empty.
	Principal        string    `json:"principal,omitempty"`
	Mark             string    `json:"mark,omitempty"`
	PrincipalExpires time.Time `json:"principal_expires,omitzero"`
	// ClientSecret makes it a client secret; nil for a ticket that is used once.
	ClientSecret *ClientSecret `json:"client_secret,omitempty"`
	// Trace is the traceparent of the request that made it; may be empty.
	Trace string `json:"trace,omitempty"`
	// ExpiresAt is when it expires. Create sets a zero one to Options.TicketLife from now.
	ExpiresAt time.Time `json:"expires_at"`
	// UsedAt is when it was used; zero if it wasn't.
	UsedAt time.Time `json:"used_at,omitzero"`
}

// ClientSecret is for clients of OpenAI's Realtime protocol: until it expires it admits one session after another, all
// with the same conversation and settings.
type ClientSecret struct {
	// Model is the model that was asked for; may be empty.
	Model string `json:"model,omitempty"`
	// Session has settings of the session, in the form of a session.update; may be empty.
	Session json.RawMessage `json:"session,omitempty"`
	// LockInstructions and LockTools mean that the client cannot change these settings.
	LockInstructions bool `json:"lock_instructions,omitempty"`
	LockTools        bool `json:"lock_tools,omitempty"`
}

// SecretPrefix begins all client secrets, as OpenAI's.
const SecretPrefix = "ek_"

// Tickets admit clients to voice sessions. They are kept for an hour after they expire, so that a late client gets the
// right error.
type Tickets struct {
	// Immutable.
	bucket *bucket
	life   time.Duration
	most   uint64
}

// Create stores a ticket durably and returns its secret, of letters, digits, - and _. It stores only the secret's
// SHA-256. The errors wrap ErrFull, ErrUnavailable or ErrTooBig, or name the ticket's problem.
func (t *Tickets) Create(ctx context.Context, ticket Ticket) (secret string, err error) {
	now := time.Now().UTC()
	if ticket.ExpiresAt.IsZero() {
		ticket.ExpiresAt = now.Add(t.life)
	}
	origin, ok := CleanOrigin(ticket.Origin)
	who, named := identity(ticket.User)
	switch {
	case ticket.SessionID == "":
		return "", errors.New("store: a ticket needs a session")
	case !named:
		return "", ErrUser
	case !ok:
		return "", fmt.Errorf("store: the origin %.60q is invalid: an origin is a scheme and a host, such as "+
			"https://example.org", ticket.Origin)
	case !ticket.ExpiresAt.After(now):
		return "", errors.New("store: the ticket has already expired")
	}
	if err := t.room(ctx); err != nil {
		return "", err
	}
	ticket.Origin, ticket.User, ticket.UsedAt = origin, who, time.Time{}
	data, err := encode(ticket)
	if err != nil {
		return "", err
	}
	if secret = newSecret(); ticket.ClientSecret != nil {
		secret = SecretPrefix + secret
	}
	logging.Made(logging.Ticket, secret)
	_, err = t.bucket.create(ctx, keyOf(secret), data, ticket.ExpiresAt.Sub(now)+afterlife)
	if err != nil {
		return "", err
	}
	return secret, nil
}

// newSecret returns a ticket's secret: 52 lower-case letters and digits. Unlike URL-safe base64, it never begins with a
// hyphen, because a person may type it after --ticket.
func newSecret() string {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // never fails
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw))
}

func (t *Tickets) room(ctx context.Context) error {
	s := t.bucket.store
	return s.within(ctx, s.o.Wait, "counting the tickets", func(ctx context.Context) error {
		info, err := t.bucket.stream.Info(ctx)
		if err == nil && info.State.Msgs >= t.most {
			err = final{fmt.Errorf("%w: %d tickets are remembered", ErrFull, t.most)}
		}
		return err
	})
}

// Redeem uses a ticket, from a page of that origin; empty for a client that isn't a page. Among all nodes exactly one
// caller succeeds.
//
// ErrUnknown: it doesn't exist, or expired more than an hour ago. ErrOrigin: it is for another origin; it stays usable.
// ErrUsed, ErrExpired: the returned ticket says when. The other errors wrap ErrUnavailable or ErrCorrupt; after
// ErrUnavailable it may be used or not.
func (t *Tickets) Redeem(ctx context.Context, secret, origin string, now time.Time) (Ticket, error) {
	var ticket Ticket
	_, err := t.bucket.change(ctx, keyOf(secret), func(h held) (w *write, err error) {
		if ticket, err = usable(h, origin, now); err != nil {
			return nil, err
		}
		if ticket.ClientSecret != nil {
			ticket = Ticket{}
			return nil, errNone
		}
		ticket.UsedAt = now.UTC()
		data, err := encode(ticket)
		return &write{data: data, ttl: max(ticket.ExpiresAt.Sub(now), 0) + afterlife}, err
	})
	return ticket, err
}

// Secret returns the ticket of a client secret, for a page of that origin; empty for a client that isn't a page. The
// errors are those of Redeem, without ErrUsed.
func (t *Tickets) Secret(ctx context.Context, secret, origin string, now time.Time) (Ticket, error) {
	h, err := t.bucket.get(ctx, keyOf(secret))
	if err != nil {
		return Ticket{}, err
	}
	ticket, err := usable(h, origin, now)
	if err == nil && ticket.ClientSecret == nil {
		return Ticket{}, errNone
	}
	return ticket, err
}

func usable(h held, origin string, now time.Time) (ticket Ticket, err error) {
	if !h.exists() {
		return Ticket{}, errNone
	}
	ticket, err = decodeTicket(h.data)
	switch {
	case err != nil:
		return Ticket{}, err
	case ticket.Origin != "" && !sameOrigin(ticket.Origin, origin):
		return Ticket{}, ErrOrigin
	case !ticket.UsedAt.IsZero():
		return ticket, ErrUsed
	case !now.Before(ticket.ExpiresAt):
		return ticket, ErrExpired
	}
	return ticket, nil
}

// CleanOrigin returns an origin as browsers write it: scheme, host, and a port other than the default. ok is false for
// an invalid origin. Empty stays empty.
func CleanOrigin(text string) (clean string, ok bool) {
	if text == "" {
		return "", true
	}
	o, err := origin.Parse(strings.TrimSuffix(text, "/"))
	if err != nil {
		return "", false
	}
	return o.String(), true
}

func sameOrigin(of, from string) bool {
	clean, ok := CleanOrigin(from)
	return ok && clean == of
}

func decodeTicket(data []byte) (Ticket, error) {
	return decodeAs(data, decode, "a ticket without a session, a user or an end", func(t Ticket) bool {
		return t.SessionID != "" && t.User != "" && !t.ExpiresAt.IsZero()
	})
}
