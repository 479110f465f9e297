package execute

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"time"

	"voicegw/internal/secretwatch"
	"voicegw/orchestrator/policy"
	"voicegw/prompts/toolerror"
	"voicegw/registry"
	"voicegw/store"
)

// Question is a question to the user that was recorded.
type Question struct {
	// Call is the call that it is about.
	Call string
	// Refused is the call's answer where the tool's own check has refused it: then nobody
	// is asked and the other fields are empty. Nil otherwise.
	Refused *registry.Envelope
	// Token answers it; empty if it could not be recorded. Reference is its short name.
	Token, Reference string
	ExpiresAt        time.Time
}

// Answer is what is to be recorded as the answer to a question.
type Answer struct {
	Token    string
	Approved bool
	// By says who gave it, for whoever is told of the Resolution.
	By string
}

// Resolution is what was recorded as the answer to a question. Err is nil,
// store.ErrUsed, store.ErrExpired, store.ErrUnknown, or says that nothing could be
// recorded.
type Resolution struct {
	Answer
	// Outcome is what became of the question in the end; after store.ErrUsed that is
	// another answer than this one, or this one given before. Empty if nobody knows.
	Outcome store.Outcome
	Err     error
}

// storeTime bounds what is asked of the store for a confirmation.
const storeTime = 5 * time.Second

// Ask records the question whether a call may run, unless the tool's own check refuses
// the call: a person is not asked to approve what cannot be done. Asked is told.
func (c *Calls) Ask(j Job) {
	c.begin(j.Prepared.Tool().ToolID, func() {
		session := c.c.Session
		session.Turn, session.Now = j.Turn, time.Now().UTC()
		if env := j.Prepared.Check(c.over(), session, c.c.Capabilities...); env != nil {
			c.c.Asked(Question{Call: j.Call, Refused: env})
			return
		}
		q, err := c.e.ask(j, c.c.Session)
		if err != nil {
			c.e.opts.Logger.Error("a question to the user could not be recorded", "tool", j.Prepared.Tool().ToolID, "session_id", c.c.Session.ID, "call_id", j.Call, "error", err)
		}
		c.c.Asked(q)
	})
}

var errNoConfirmations = errors.New("there is no place to keep confirmations")

func (e *Executor) ask(j Job, s registry.Session) (Question, error) {
	q := Question{Call: j.Call}
	if e.opts.Confirmations == nil {
		return q, errNoConfirmations
	}
	ctx, cancel := context.WithTimeout(e.ctx(), storeTime)
	defer cancel()
	token := "cf_" + rand.Text()
	secretwatch.Made(secretwatch.Confirmation, token)
	now := time.Now().UTC()
	p := j.Prepared
	record := store.Confirmation{
		Token: token, Reference: reference(token),
		Session: s.ID, User: s.UserID, Agent: s.Agent, Vouched: s.Vouched, Scopes: s.Scopes, Conversation: s.ConversationID, Mode: string(p.Mode()),
		Tool: p.Tool().ToolID, ToolVersion: p.Tool().Version, RegistryVersion: p.RegistryVersion(),
		Turn: j.Turn, Args: p.Args(), Preview: p.Preview(), IdempotencyKey: j.Keys.Idempotency, BusinessKey: j.Keys.Business, Message: j.Message,
		CreatedAt: now, ExpiresAt: now.Add(e.opts.Life).Truncate(time.Millisecond),
	}
	if p.Tool().SideEffects == registry.SideEffectsWrites {
		record.Deed = deed(Job{Prepared: p, Keys: approvedKeys(record.Reference, p), Message: j.Message}, s)
	}
	if err := e.opts.Confirmations.Create(ctx, record); err != nil {
		return q, err
	}
	q.Token, q.Reference, q.ExpiresAt = token, record.Reference, record.ExpiresAt
	return q, nil
}

// approvedKeys are those of an approved call, as policy.Book gives them too.
func approvedKeys(reference string, p *registry.Prepared) policy.Keys {
	return policy.Keys{Idempotency: "confirmation:" + reference, Business: p.BusinessKey()}
}

// Settle says that it is known what came of an approved call of this conversation, by the
// reference of its question. It does not block: what is not recorded is told again after a
// restart.
func (c *Calls) Settle(reference string) {
	c.begin("", func() { c.e.Settle(c.c.Session.ConversationID, c.c.Session.ID, reference) })
}

// Settle says that it is known what came of an approved call.
func (e *Executor) Settle(conversation, session, reference string) {
	if e.opts.Confirmations == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := e.opts.Confirmations.Settle(ctx, conversation, session, reference); err != nil {
		e.opts.Logger.Warn("it could not be recorded that the outcome of an approved action is known; after a restart it counts as unknown",
			"session_id", session, "conversation_id", conversation, "reference", reference, "error", err)
	}
}

// reference is the short name of a confirmation: it tells nothing of the token.
func reference(token string) string {
	sum := sha256.Sum256([]byte("reference:" + token))
	return base32.StdEncoding.EncodeToString(sum[:])[:6]
}

// Resolve records the answer to a question of this conversation. Resolved is told.
func (c *Calls) Resolve(a Answer) {
	c.begin("", func() {
		r := Resolution{Answer: a, Err: errNoConfirmations}
		if kept := c.e.opts.Confirmations; kept != nil {
			ctx, cancel := context.WithTimeout(c.e.ctx(), storeTime)
			defer cancel()
			var question store.Confirmation
			question, r.Err = kept.Resolve(ctx, a.Token, c.c.Session.ID, a.Approved, time.Now())
			r.Outcome = question.Outcome
		}
		c.c.Resolved(r)
	})
}

// Fate is what has become of a question.
type Fate int

// The fates.
const (
	// FateOpen: it waits for its answer still, or the store does not say: a question too few
	// is mended by asking again, a deed too many is not.
	FateOpen Fate = iota
	FateApproved
	FateDeclined
	FateExpired
	// FateForgotten: the store knows nothing of it any more, or never did.
	FateForgotten
)

// Fate says what has become of the question of that name (store.QuestionName).
func (e *Executor) Fate(ctx context.Context, name string) Fate {
	if e.opts.Confirmations == nil {
		return FateForgotten
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	c, err := e.opts.Confirmations.Named(ctx, name)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return FateForgotten
	case err != nil:
		return FateOpen
	case c.Outcome == store.Approved:
		return FateApproved
	case c.Outcome == store.Denied:
		return FateDeclined
	case c.Outcome != "" || !time.Now().Before(c.ExpiresAt):
		return FateExpired
	default:
		return FateOpen
	}
}

// Answer records the answer to a question of any conversation, for the API. The error
// is that of a Resolution. That ctx is cancelled meanwhile does not end it: the answer
// of one who leaves counts.
func (e *Executor) Answer(ctx context.Context, token string, approved bool) (store.Confirmation, error) {
	return e.AnswerIn(ctx, "", token, approved)
}

// AnswerIn is Answer for a question of one session alone.
func (e *Executor) AnswerIn(ctx context.Context, session, token string, approved bool) (store.Confirmation, error) {
	if e.opts.Confirmations == nil {
		return store.Confirmation{}, errNoConfirmations
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return e.opts.Confirmations.Resolve(ctx, token, session, approved, time.Now())
}

// RunStored runs what was approved of a conversation that is not here any more, with the
// arguments that were shown, and returns the answer and what ran; nothing if it could
// not be prepared. A tool that has changed since is not run.
func (e *Executor) RunStored(ctx context.Context, tools *registry.Snapshot, c store.Confirmation, caps ...any) (registry.Envelope, *registry.Prepared) {
	leave, ok := e.enter(c.Session, c.Tool)
	defer leave()
	if !ok {
		return registry.Envelope{Error: registry.NewError(registry.ErrorTransient, toolerror.ShuttingDown())}, nil
	}
	p, refused := tools.Prepare(c.Tool, registry.Mode(c.Mode), c.Args)
	if refused != nil {
		return *refused, nil
	}
	if p.Tool().Version != c.ToolVersion || string(p.Args()) != string(c.Args) {
		return p.Refuse(registry.NewError(registry.ErrorConflict, toolerror.ToolChanged(c.Tool, c.ToolVersion, p.Tool().Version))), p
	}
	session := registry.Session{
		ID: c.Session, UserID: c.User, ConversationID: c.Conversation, Agent: c.Agent, Vouched: c.Vouched, Scopes: c.Scopes, Mode: p.Mode(), Turn: c.Turn, Now: time.Now().UTC(),
	}
	// Whoever asked may leave: what a person has approved is finished.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(e.ctx(), cancel)()
	j := Job{Call: "confirmation_" + c.Reference, Turn: c.Turn, Prepared: p, Approved: true, Message: c.Message,
		Keys: approvedKeys(c.Reference, p)}
	env, _ := e.run(ctx, j, session, caps)
	return env, p
}
