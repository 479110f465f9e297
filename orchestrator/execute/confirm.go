package execute

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"sync"
	"time"

	"voicegw/internal/logging"
	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// storeTime bounds each store operation for a confirmation.
const storeTime = 5 * time.Second

// Ask records a question and reports calls.Recorded. A call that would be refused needs no question.
func (c *Runner) Ask(j calls.Ask) {
	tool := j.Prepared.Tool().ToolID
	c.begin(tool, func() {
		s := c.session(j.Turn, j.Call)
		in := calls.Recorded{Call: j.Call, Refused: c.e.refused(calls.Run(j), s, c.c)}
		if in.Refused == nil {
			in.Refused = j.Prepared.Check(c.lasting(), s, c.c.Capabilities...)
		}
		if in.Refused == nil {
			err := errNotOwner
			if c.c.owned() {
				err = c.e.ask(calls.Run(j), c.now(), c.c.Channel, &in)
			}
			if err != nil {
				c.e.opts.Logger.Error("question to the user not recorded", "tool", tool, "session_id", c.c.Session.ID,
					"call_id", j.Call, "error", err)
			}
		}
		c.c.Report(in)
	})
}

// errNotOwner: another process may own the conversation and would not know of the question.
var errNotOwner = errors.New("another process may have the session")

var errNoConfirmations = errors.New("no store for confirmations")

func (e *Executor) ask(j calls.Run, s registry.Session, channel string, q *calls.Recorded) error {
	if e.opts.Confirmations == nil {
		return errNoConfirmations
	}
	ctx, cancel := context.WithTimeout(e.ctx(), storeTime)
	defer cancel()
	token := "cf_" + rand.Text()
	logging.Made(logging.Confirmation, token)
	now := time.Now().UTC()
	p := j.Prepared
	record := store.Confirmation{
		Token: token, Reference: reference(token),
		Session: s.ID, Channel: channel, User: s.UserID, Agent: s.Agent, Vouched: s.Vouched, Scopes: s.Scopes,
		Conversation: s.ConversationID,
		Mode:         string(p.Mode()), TimeZone: s.TimeZone,
		Tool: p.Tool().ToolID, ToolVersion: p.Tool().Version, RegistryVersion: p.RegistryVersion(),
		Turn: j.Turn, Args: p.Args(), Preview: p.Preview(), IdempotencyKey: j.Keys.Idempotency, BusinessKey: j.Keys.Business,
		Message:   j.Message,
		CreatedAt: now, ExpiresAt: now.Add(e.opts.Life).Truncate(time.Millisecond),
	}
	if p.Tool().SideEffects == spec.SideEffectsWrites {
		keys := calls.ApprovedKeys(record.Reference, p.BusinessKey())
		record.Action = actionKey(calls.Run{Prepared: p, Keys: keys, Message: j.Message}, s)
	}
	if err := e.opts.Confirmations.Create(ctx, record); err != nil {
		return err
	}
	q.Token, q.Name, q.Reference, q.ExpiresAt = token, store.QuestionName(token), record.Reference, record.ExpiresAt
	return nil
}

// Settle is [Executor.Settle] without blocking.
func (c *Runner) Settle(reference string) {
	c.begin("", func() { c.e.Settle(c.c.Session.ConversationID, c.c.Session.ID, reference) })
}

// Settle records that the outcome of an approved call is known. Otherwise it is reported again after a restart.
// reference is the short name of its question. It blocks for at most storeTime.
func (e *Executor) Settle(conversation, session, reference string) {
	if e.opts.Confirmations == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := e.opts.Confirmations.Settle(ctx, conversation, session, reference); err != nil {
		e.opts.Logger.Warn("outcome of an approved action not recorded; after a restart it counts as unknown",
			"session_id", session, "conversation_id", conversation, "reference", reference, "error", err)
	}
}

// reference returns the short name of a confirmation. It does not reveal the token.
func reference(token string) string {
	sum := sha256.Sum256([]byte("reference:" + token))
	return base32.StdEncoding.EncodeToString(sum[:])[:6]
}

// Resolve records the answer to a question and reports calls.Resolved.
func (c *Runner) Resolve(a calls.Resolve) {
	c.begin("", func() {
		err := errNoConfirmations
		var question store.Confirmation
		if kept := c.e.opts.Confirmations; kept != nil {
			ctx, cancel := context.WithTimeout(c.e.ctx(), storeTime)
			defer cancel()
			question, err = kept.Resolve(ctx, a.Token, c.c.Session.ID, a.Approved, time.Now())
		}
		in := resolved(a, question.Outcome, err)
		if in.Outcome == calls.OutcomeFailed {
			c.e.opts.Logger.Error("answer to a confirmation not recorded", "session_id", c.c.Session.ID, "error", err)
		}
		c.c.Report(in)
	})
}

// resolved returns the result of recording an answer. first is the outcome of an answer that came first, which counts:
// it may be this one, with its acknowledgement lost.
func resolved(a calls.Resolve, first store.Outcome, err error) calls.Resolved {
	in := calls.Resolved{Token: a.Token, Outcome: calls.OutcomeDenied, By: a.By}
	switch {
	case err == nil && a.Approved:
		in.Outcome = calls.OutcomeApproved
	case err == nil:
	case errors.Is(err, store.ErrExpired), errors.Is(err, store.ErrUnknown):
		in.Outcome = calls.OutcomeExpired
	case errors.Is(err, store.ErrUsed):
		in.Outcome = calls.OutcomeUsed
		if first == store.Approved || first == store.Denied {
			in.Outcome = calls.Outcome(first)
		}
		if a.Approved != (first == store.Approved) || a.By == calls.ByClock {
			in.By = calls.ByAPI // the only other source
		}
	default:
		in.Outcome = calls.OutcomeFailed
	}
	return in
}

// QuestionState is the state of a question.
type QuestionState int

// Values of QuestionState.
const (
	QuestionOpen QuestionState = iota // it waits, or the store cannot be read: asking again is harmless
	QuestionApproved
	QuestionDeclined
	QuestionExpired
	QuestionUnknown // the store does not have it
)

// QuestionState returns the state of the question with that name (see store.QuestionName).
func (e *Executor) QuestionState(ctx context.Context, name string) QuestionState {
	if e.opts.Confirmations == nil {
		return QuestionUnknown
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	c, err := e.opts.Confirmations.Named(ctx, name)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return QuestionUnknown
	case err != nil:
		return QuestionOpen
	case c.Outcome == store.Approved:
		return QuestionApproved
	case c.Outcome == store.Denied:
		return QuestionDeclined
	case c.Outcome != "" || !time.Now().Before(c.ExpiresAt):
		return QuestionExpired
	default:
		return QuestionOpen
	}
}

// CheckQuestion returns nil if the question belongs to the user, or if the user is zero; otherwise store.ErrUnknown or
// the store's error.
func (e *Executor) CheckQuestion(ctx context.Context, token string, who user.User) error {
	if who.IsZero() {
		return nil
	}
	question, err := e.Question(ctx, store.QuestionName(token))
	if err == nil && question.User != who.String() {
		return store.ErrUnknown
	}
	return err
}

// Answer records the answer to a question of that session, or of any session if session is empty. The error is
// store.ErrUnknown, store.ErrUsed or store.ErrExpired, or the answer was not recorded. It counts even if ctx ends.
func (e *Executor) Answer(ctx context.Context, session, token string, approved bool) (store.Confirmation, error) {
	if e.opts.Confirmations == nil {
		return store.Confirmation{}, errNoConfirmations
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return e.opts.Confirmations.Resolve(ctx, token, session, approved, time.Now())
}

// Question returns the question with that name (see store.QuestionName). The error is store.ErrUnknown, or it could not
// be read.
func (e *Executor) Question(ctx context.Context, name string) (store.Confirmation, error) {
	if e.opts.Confirmations == nil {
		return store.Confirmation{}, errNoConfirmations
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return e.opts.Confirmations.Named(ctx, name)
}

// AnswerNamed is [Executor.Answer] for a question of [Executor.Question], for a caller that has checked its user.
func (e *Executor) AnswerNamed(ctx context.Context, name string, approved bool) (store.Confirmation, error) {
	if e.opts.Confirmations == nil {
		return store.Confirmation{}, errNoConfirmations
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return e.opts.Confirmations.ResolveNamed(ctx, name, "", approved, time.Now())
}

// RunStored runs an approved call of a conversation that is not on this node, unless its tool has changed or needs a
// new scope. call names it. The prepared call may be nil. Of the conversation it uses Capabilities, Ephemeral, Tell,
// Blocked and Audit.
func (e *Executor) RunStored(ctx context.Context, call string, tools *registry.Snapshot, c store.Confirmation,
	of Conversation) (registry.Envelope, *registry.Prepared) {
	leave, ok := e.enter(c.Session, c.Tool)
	defer leave()
	if !ok {
		return registry.Envelope{Error: registry.NewError(registry.ErrorTransient, prompts.ShuttingDown)}, nil
	}
	p, refused := tools.Permitted(c.Scopes).Prepare(c.Tool, spec.Mode(c.Mode), c.Args)
	if refused != nil {
		return *refused, nil
	}
	if p.Tool().Version != c.ToolVersion || string(p.Args()) != string(c.Args) {
		return p.Refuse(registry.NewError(registry.ErrorConflict, prompts.ToolChanged(c.Tool, c.ToolVersion, p.Tool().Version))), p
	}
	session := registry.Session{
		ID: c.Session, UserID: c.User, ConversationID: c.Conversation, Agent: c.Agent, Vouched: c.Vouched, Scopes: c.Scopes,
		Mode: p.Mode(), Turn: c.Turn, Now: time.Now().UTC(), TimeZone: c.TimeZone,
	}
	// An approved action finishes even if the client leaves.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(e.ctx(), cancel)()
	j := calls.Run{Call: call, Turn: c.Turn, Prepared: p, Reference: c.Reference, Message: c.Message,
		Keys: calls.ApprovedKeys(c.Reference, p.BusinessKey())}
	gone := &Conversation{
		Capabilities: of.Capabilities, Ephemeral: of.Ephemeral, Tell: of.Tell, Blocked: of.Blocked, Audit: of.Audit,
		over: func() bool { return true },
	}
	env, _ := e.run(ctx, j, session, gone, outermost(j, storedPermit(tools, session), new(sync.WaitGroup)))
	return env, p
}
