package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"voicegw/store/witness"
)

// Outcome is how a confirmation was answered.
type Outcome string

// The outcomes. A confirmation that waits for its answer has the empty one.
const (
	Approved Outcome = "approved"
	Denied   Outcome = "denied"
	Expired  Outcome = "expired"
)

// afterlife is how long a confirmation is remembered after it has expired, so that a late
// answer is told that it is late, or that the question was answered.
const afterlife = time.Hour

// Confirmation is a question put to a user: may this be done?
type Confirmation struct {
	// Token is the secret that answers it. Only its SHA-256 is stored.
	Token string `json:"-"`
	// Reference is its short name; it is not a secret.
	Reference string `json:"reference"`
	Session   string `json:"session"`
	User      string `json:"user,omitempty"`
	Agent     string `json:"agent,omitempty"`
	// Vouched says that a trusted caller named the user; Scopes are what that caller granted.
	Vouched         bool     `json:"vouched,omitempty"`
	Scopes          []string `json:"scopes,omitempty"`
	Conversation    string   `json:"conversation,omitempty"`
	Mode            string   `json:"mode,omitempty"`
	TimeZone        string   `json:"time_zone,omitempty"` // the user's, in which the arguments are read
	Tool            string   `json:"tool"`
	ToolVersion     string   `json:"tool_version,omitempty"`
	RegistryVersion string   `json:"registry_version,omitempty"`
	Turn            int      `json:"turn,omitempty"`
	// Args are the arguments that the user was asked about, in their own bytes without the
	// white space between them. Exactly these run, whatever anybody says later.
	Args           json.RawMessage `json:"args,omitempty"`
	Preview        string          `json:"preview,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	BusinessKey    string          `json:"business_key,omitempty"`
	// Message names the call within a text message that may be sent again; empty by voice.
	Message string `json:"message,omitempty"`
	// Deed is the key of its side effect in the ledger once it is approved; empty for a tool
	// that changes nothing.
	Deed string `json:"deed,omitempty"`
	// CreatedAt is when the user was asked; Create sets a zero one to now. From ExpiresAt on
	// it cannot be approved.
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	// Outcome is empty until it is answered.
	Outcome Outcome `json:"outcome,omitempty"`
}

// Confirmations holds the questions that wait for an answer and, for an hour after they
// expire, the answered ones. Its methods may be used concurrently.
type Confirmations struct {
	// Fixed after openConfirmations.
	bucket    *bucket
	approvals *Approvals
}

func (s *Store) openConfirmations(ctx context.Context) (*Confirmations, error) {
	b, err := s.openBucket(ctx, witness.Confirmations, "voicegw: questions put to users, and their answers")
	if err != nil {
		return nil, err
	}
	approvals, err := s.openApprovals(ctx, b)
	return &Confirmations{bucket: b, approvals: approvals}, err
}

// Create records a confirmation. It is durable when Create returns. ErrUsed: the
// token exists already. The other errors wrap ErrUnavailable or ErrTooBig, or say what is
// missing.
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

// QuestionName names the confirmation of a token without revealing the token: a caller with
// the name can read the confirmation with Named and cannot answer it.
func QuestionName(token string) string { return keyOf(token) }

// Get returns a confirmation to show it. It may be outdated when Get returns: only Resolve
// decides. The errors are ErrUnknown, or wrap ErrUnavailable or ErrCorrupt.
func (c *Confirmations) Get(ctx context.Context, token string) (Confirmation, error) {
	question, _, err := c.read(ctx, token)
	return question, err
}

// Named is Get by a name that QuestionName returned. The Confirmation has no Token.
func (c *Confirmations) Named(ctx context.Context, name string) (Confirmation, error) {
	if !isKey(name) {
		return Confirmation{}, ErrUnknown
	}
	question, _, err := c.readKey(ctx, name)
	return question, err
}

func (c *Confirmations) read(ctx context.Context, token string) (Confirmation, held, error) {
	question, h, err := c.readKey(ctx, keyOf(token))
	question.Token = token
	return question, h, err
}

func (c *Confirmations) readKey(ctx context.Context, key string) (Confirmation, held, error) {
	h, err := c.bucket.get(ctx, key)
	if err != nil {
		return Confirmation{}, held{}, err
	}
	question, err := decodeConfirmation(h.data)
	return question, h, err
}

// Resolve answers a confirmation now. Among all nodes exactly one caller gets no error, and
// its answer is durable. If approved, that caller must run the confirmation's arguments and
// report with Settle when the outcome is known. session must be the confirmation's own, or
// empty if the caller has checked that otherwise.
//
// ErrUnknown: it does not exist, or belongs to another session. ErrUsed: it was answered
// before, and the returned confirmation says how. ErrExpired: the answer is late; from then
// on it is late for everybody, whatever their clocks say. The other errors wrap
// ErrUnavailable or ErrCorrupt; after ErrUnavailable it may be answered or not.
func (c *Confirmations) Resolve(ctx context.Context, token, session string, approved bool, now time.Time) (Confirmation, error) {
	ctx, cancel := c.bucket.store.bounded(ctx)
	defer cancel()
	mark := newMark()
	for {
		question, h, err := c.read(ctx, token)
		if err != nil {
			return Confirmation{}, err
		}
		if session != "" && question.Session != session {
			return Confirmation{}, ErrUnknown
		}
		if question.Outcome == "" {
			question.Outcome = answer(question, approved, now)
			err = c.answer(ctx, question, mark, h.revision, now)
			if errors.Is(err, errConflict) {
				// Somebody else answered first, and that answer counts.
				if err = c.bucket.store.pause(ctx); err == nil {
					continue
				}
			}
			if err != nil {
				return Confirmation{}, err
			}
			h.mark = mark
		} else if h.mark == mark {
			// It is this caller's own write, whose acknowledgement was lost.
			if err := c.bucket.claimHeld(ctx, keyOf(token), h); err != nil {
				return Confirmation{}, err
			}
		}
		switch {
		case question.Outcome == Expired:
			return question, ErrExpired
		case h.mark != mark:
			return question, ErrUsed
		}
		return question, nil
	}
}

func answer(question Confirmation, approved bool, now time.Time) Outcome {
	switch {
	case !now.Before(question.ExpiresAt):
		return Expired
	case approved:
		return Approved
	}
	return Denied
}

// answer writes an answered confirmation if its revision is still that one.
func (c *Confirmations) answer(ctx context.Context, question Confirmation, mark string, revision uint64, now time.Time) error {
	data, err := encode(question)
	if err != nil {
		return err
	}
	life := max(question.ExpiresAt.Sub(now)+afterlife, time.Minute)
	if question.Outcome == Approved {
		// The note is written before the answer, and lives as long.
		if err := c.approvals.note(ctx, question, now); err != nil {
			return err
		}
		life = max(life, c.approvals.life)
	}
	_, err = c.bucket.put(ctx, keyOf(question.Token), data, mark, revision, life)
	return err
}

// Settle is [Approvals.Settle].
func (c *Confirmations) Settle(ctx context.Context, conversation, session, reference string) error {
	return c.approvals.Settle(ctx, conversation, session, reference)
}

// decodeConfirmation reads a confirmation of the bucket.
func decodeConfirmation(data []byte) (Confirmation, error) {
	var question Confirmation
	if err := decode(data, &question); err != nil {
		return Confirmation{}, err
	}
	switch question.Outcome {
	case "", Approved, Denied, Expired:
	default:
		return Confirmation{}, fmt.Errorf("%w: a confirmation with the outcome %.20q", ErrCorrupt, question.Outcome)
	}
	if question.Session == "" || question.Tool == "" || question.ExpiresAt.IsZero() {
		return Confirmation{}, fmt.Errorf("%w: a confirmation without a session, a tool or an end", ErrCorrupt)
	}
	return question, nil
}
