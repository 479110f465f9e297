package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Outcome is how a confirmation was answered.
type Outcome string

// The outcomes; empty while waiting for an answer.
const (
	Approved Outcome = "approved"
	Denied   Outcome = "denied"
	Expired  Outcome = "expired"
)

// afterlife is how long an expired confirmation is kept, so that a late answer gets the right error.
const afterlife = time.Hour

// Confirmation asks a user to approve an action.
type Confirmation struct {
	// Token is the secret needed to answer. Only its SHA-256 is stored.
	Token string `json:"-"`
	// Reference is its short name; not secret.
	Reference string `json:"reference"`
	Session   string `json:"session"`
	Channel   string `json:"channel,omitempty"` // as in the audit
	User      string `json:"user,omitempty"`
	Agent     string `json:"agent,omitempty"`
	// Vouched means that a trusted caller named the user; Scopes are granted by that caller.
	Vouched         bool     `json:"vouched,omitempty"`
	Scopes          []string `json:"scopes,omitempty"`
	Conversation    string   `json:"conversation,omitempty"`
	Mode            string   `json:"mode,omitempty"`
	TimeZone        string   `json:"time_zone,omitempty"` // the user's, for reading the arguments
	Tool            string   `json:"tool"`
	ToolVersion     string   `json:"tool_version,omitempty"`
	RegistryVersion string   `json:"registry_version,omitempty"`
	Turn            int      `json:"turn,omitempty"`
	// Args are the arguments shown to the user, in their own bytes without white space between values. Exactly these run.
	Args           json.RawMessage `json:"args,omitempty"`
	Preview        string          `json:"preview,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	BusinessKey    string          `json:"business_key,omitempty"`
	// Message identifies the call within a text message that may be repeated; empty for voice.
	Message string `json:"message,omitempty"`
	// Action is the ledger key of its side effect; empty without one.
	Action string `json:"deed,omitempty"`
	// CreatedAt is when the user was asked; Create sets a zero one to now. It can't be approved after ExpiresAt.
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	// Outcome is empty until answered.
	Outcome Outcome `json:"outcome,omitempty"`
}

// Answer returns the outcome of an answer at a time, from a session or, if empty, from any. It changes nothing. The error
// is ErrUnknown, or with the present outcome ErrUsed or ErrExpired, as by [Confirmations.Resolve].
func (c Confirmation) Answer(session string, approved bool, now time.Time) (Outcome, error) {
	switch {
	case session != "" && c.Session != session:
		return c.Outcome, ErrUnknown
	case c.Outcome == Expired:
		return Expired, ErrExpired
	case c.Outcome != "":
		return c.Outcome, ErrUsed
	case !now.Before(c.ExpiresAt):
		return Expired, nil
	case approved:
		return Approved, nil
	}
	return Denied, nil
}

// Confirmations stores open confirmations and, for an hour after they expire, answered ones.
type Confirmations struct {
	// Immutable.
	bucket    *bucket
	approvals *Approvals
}

// Create stores a confirmation durably. ErrUsed means the token exists. The other errors wrap ErrUnavailable or
// ErrTooBig, or name a missing field.
func (c *Confirmations) Create(ctx context.Context, question Confirmation) error {
	if question.CreatedAt.IsZero() {
		question.CreatedAt = time.Now()
	}
	switch {
	case question.Token == "" || question.Session == "" || question.Tool == "":
		return errors.New("store: a confirmation needs a token, a session and a tool")
	case question.Outcome != "":
		return fmt.Errorf("store: a confirmation that is %s before it was asked", question.Outcome)
	case !question.ExpiresAt.After(question.CreatedAt):
		return errors.New("store: a confirmation that expires before it was asked")
	}
	data, err := encode(question)
	if err != nil {
		return err
	}
	life := question.ExpiresAt.Sub(question.CreatedAt) + afterlife
	_, err = c.bucket.create(ctx, keyOf(question.Token), data, life)
	if errors.Is(err, errConflict) {
		return fmt.Errorf("%w: the token of confirmation %s", ErrUsed, question.Reference)
	}
	return err
}

// QuestionName returns a token's confirmation name, which allows reading it with Named but not answering it.
func QuestionName(token string) string { return keyOf(token) }

// Get returns a confirmation for display. Only Resolve is authoritative. The errors are ErrUnknown, or wrap
// ErrUnavailable or ErrCorrupt.
func (c *Confirmations) Get(ctx context.Context, token string) (Confirmation, error) {
	question, _, err := read(ctx, c.bucket, keyOf(token), decodeConfirmation)
	question.Token = token
	return question, err
}

// Named is Get by QuestionName. The Confirmation has no Token.
func (c *Confirmations) Named(ctx context.Context, name string) (Confirmation, error) {
	if _, ok := witnessKey(name); !ok {
		return Confirmation{}, ErrUnknown
	}
	question, _, err := read(ctx, c.bucket, name, decodeConfirmation)
	return question, err
}

// Resolve answers a confirmation durably. Among all nodes exactly one caller succeeds; if approved, it must run the
// confirmation's arguments and call Settle when the outcome is known. session must be the confirmation's, or empty if
// the caller has checked it otherwise.
//
// ErrUnknown: it doesn't exist or belongs to another session. ErrUsed: it was already answered; the returned
// confirmation has the outcome. ErrExpired: too late, from now on for everyone whatever their clocks. The other errors
// wrap ErrUnavailable or ErrCorrupt; after ErrUnavailable it may be answered or not.
func (c *Confirmations) Resolve(ctx context.Context, token, session string, approved bool, now time.Time) (Confirmation, error) {
	question, err := c.ResolveNamed(ctx, keyOf(token), session, approved, now)
	if question.Session != "" {
		question.Token = token
	}
	return question, err
}

// ResolveNamed is [Confirmations.Resolve] for the question with that name (QuestionName), for a caller that has checked
// that the user may answer it.
func (c *Confirmations) ResolveNamed(ctx context.Context, name, session string, approved bool, now time.Time) (Confirmation, error) {
	if _, ok := witnessKey(name); !ok {
		return Confirmation{}, ErrUnknown
	}
	ctx, cancel := c.bucket.store.bounded(ctx)
	defer cancel()
	var question Confirmation
	_, err := c.bucket.change(ctx, name, func(h held) (w *write, err error) {
		if !h.exists() {
			return nil, errNone
		}
		if question, err = decodeConfirmation(h.data); err == nil {
			question.Outcome, err = question.Answer(session, approved, now)
		}
		if err != nil {
			return nil, err
		}
		return c.answer(ctx, name, question, now)
	})
	if err == nil && question.Outcome == Expired {
		err = ErrExpired
	}
	if err != nil && !errors.Is(err, ErrUsed) && !errors.Is(err, ErrExpired) {
		return Confirmation{}, err
	}
	return question, err
}

func (c *Confirmations) answer(ctx context.Context, name string, question Confirmation, now time.Time) (*write, error) {
	data, err := encode(question)
	if err != nil {
		return nil, err
	}
	life := max(question.ExpiresAt.Sub(now)+afterlife, time.Minute)
	if question.Outcome == Approved {
		// The note is written before the answer and lives as long.
		if err := c.approvals.note(ctx, name, question, now); err != nil {
			return nil, err
		}
		life = max(life, c.approvals.life)
	}
	return &write{data: data, ttl: life}, nil
}

// Settle is [Approvals.Settle].
func (c *Confirmations) Settle(ctx context.Context, conversation, session, reference string) error {
	return c.approvals.Settle(ctx, conversation, session, reference)
}

func decodeConfirmation(data []byte) (Confirmation, error) {
	question, err := decodeAs(data, decode, "a confirmation without a session, a tool or an end", func(c Confirmation) bool {
		return c.Session != "" && c.Tool != "" && !c.ExpiresAt.IsZero()
	})
	if err == nil && !slices.Contains([]Outcome{"", Approved, Denied, Expired}, question.Outcome) {
		return Confirmation{}, fmt.Errorf("%w: a confirmation with the outcome %.20q", ErrCorrupt, question.Outcome)
	}
	return question, err
}
