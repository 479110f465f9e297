package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"voicegw/conversation"
	"voicegw/session/wsclient"
	"voicegw/store"
	"voicegw/user"
)

// Agent is a text agent. It may be used by any number of goroutines.
type Agent struct {
	// Fixed after New.
	opts Options
	// markKey makes the marks of conversations: each keeps its own while the process runs, so
	// that a provider can cache what begins with it.
	markKey [32]byte
}

// New returns an Agent.
func New(opts Options) (*Agent, error) {
	if opts.Model == nil || opts.Executor == nil || opts.Conversations == nil {
		return nil, errors.New("chat: Options need Model, Executor and Conversations")
	}
	a := &Agent{opts: opts.withDefaults()}
	rand.Read(a.markKey[:]) // it never fails: crypto/rand ends the program instead
	return a, nil
}

// Name is what requests ask for.
func (a *Agent) Name() string { return a.opts.Name }

// Request is one turn of a user's.
type Request struct {
	// ConversationID continues a conversation; empty begins one. It is of the form that
	// conversation.ValidID takes.
	ConversationID string
	// User is who speaks; it must not be nobody.
	User user.User
	// Vouched says that a trusted caller named the user, Scopes what it has granted.
	Vouched bool
	Scopes  []string
	// Origin is that of the page which the user speaks from: a voice session that is
	// offered in this turn is for that page alone. Empty where there is none.
	Origin string
	// Message is what the user says. Empty with a Confirmation.
	Message string
	// History is what was said before, for a client that keeps the conversation itself:
	// then nothing is loaded or kept. Nil for a conversation that is kept here.
	History []Message
	// Confirmation answers a question instead of saying something.
	Confirmation *Confirmation
	// Settings are the client's own for the model, fields of Chat Completions such as
	// temperature, in JSON. Nil means none.
	Settings map[string]json.RawMessage
	// MaxOutput is the most tokens of one answer of the model; zero for the model's own
	// limit, which is never exceeded.
	MaxOutput int
}

// Confirmation is the user's answer to a confirmation.request.
type Confirmation struct {
	Token    string
	Approved bool
}

// Emit is given the messages of a turn, one after another.
type Emit func(wsclient.ServerMessage)

// leaseTime is how long a conversation stays taken if its node dies.
const leaseTime = time.Minute

// saveTime bounds what is written at the end of a turn, whoever has gone by then.
const saveTime = 5 * time.Second

// saveTries is how often a turn is written into a conversation that changes meanwhile.
const saveTries = 8

// Respond answers one turn. What happens is told to emit, the last message is a Done.
// An error comes before the first message and instead of all: ErrMessage, ErrBusy,
// ErrUnknown, ErrStore, or that of a confirmation (store.ErrUnknown, ErrUsed,
// ErrExpired). When ctx ends the turn is broken off: tools that can be stopped are
// stopped, others finish and are recorded, and Respond returns after them.
func (a *Agent) Respond(ctx context.Context, req Request, emit Emit) error {
	if err := a.check(&req); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.opts.TurnTime, errTurnTime)
	defer cancel()
	if req.History != nil {
		c := conversation.New(req.ConversationID, req.User.String(), a.opts.Name, time.Now())
		return a.newTurn(req, c, emit).answer(ctx)
	}
	release, err := a.opts.Conversations.Lease(ctx, req.ConversationID, leaseTime)
	switch {
	case errors.Is(err, store.ErrBusy):
		return ErrBusy
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	defer release()
	c, rev, err := a.load(ctx, req)
	if err != nil {
		return err
	}
	t := a.newTurn(req, c, emit)
	t.save = func(entries []conversation.Entry) error { return a.keep(ctx, req, c, rev, t.book.Carry(), entries) }
	return t.answer(ctx)
}

// keep writes what was said in a turn into its conversation, whoever has gone by then.
func (a *Agent) keep(ctx context.Context, req Request, c *conversation.Conversation, rev store.Revision, calls json.RawMessage, entries []conversation.Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for range saveTries {
		c.Append(time.Now(), entries...)
		c.Policy = calls
		_, err := a.opts.Conversations.Save(ctx, c, rev)
		if !errors.Is(err, store.ErrChanged) {
			return err
		}
		// The lease keeps other messages away, not a voice session of the conversation
		// that has ended meanwhile.
		if c, rev, err = a.load(ctx, req); err != nil {
			return err
		}
	}
	return store.ErrChanged
}

// errTurnTime ends a turn that takes too long.
var errTurnTime = errors.New("the turn took too long")

// check refuses what no turn can be made of, and names a conversation that has no name.
func (a *Agent) check(req *Request) error {
	if req.ConversationID == "" {
		req.ConversationID = conversation.NewID()
	}
	n := utf8.RuneCountInString(req.Message)
	switch {
	case !conversation.ValidID(req.ConversationID):
		return fmt.Errorf("%w: conversation_id must be 1 to %d letters, digits, dots, hyphens and underscores", ErrMessage, conversation.MaxID)
	case !conversation.May(req.User, req.ConversationID):
		return fmt.Errorf("%w: conversation_id must have at least %d characters, drawn at random, where no user is named: whoever knows it goes on with the conversation. Leave it out, and one is made", ErrMessage, conversation.MinSecret)
	case req.User.IsZero():
		return fmt.Errorf("%w: there is no user", ErrMessage)
	case req.Confirmation != nil && req.Message != "":
		return fmt.Errorf("%w: message and confirmation cannot come together", ErrMessage)
	case req.Confirmation == nil && strings.TrimSpace(req.Message) == "":
		return fmt.Errorf("%w: the message is empty", ErrMessage)
	case n > a.opts.MaxMessage:
		return fmt.Errorf("%w: the message has %d characters, at most %d are taken", ErrMessage, n, a.opts.MaxMessage)
	}
	return nil
}

// load finds the conversation of a request, or begins it.
func (a *Agent) load(ctx context.Context, req Request) (*conversation.Conversation, store.Revision, error) {
	c, rev, err := a.opts.Conversations.Load(ctx, req.ConversationID)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return conversation.New(req.ConversationID, req.User.String(), a.opts.Name, time.Now()), rev, nil
	case err != nil:
		return nil, rev, fmt.Errorf("%w: %w", ErrStore, err)
	case !c.OwnedBy(req.User):
		return nil, rev, ErrUnknown // of somebody else's nobody learns anything
	}
	return c, rev, nil
}

// safeEmit lets tools and the turn speak at the same time.
func safeEmit(emit Emit, turn int) Emit {
	var mu sync.Mutex
	return func(m wsclient.ServerMessage) {
		mu.Lock()
		defer mu.Unlock()
		wsclient.SetTurn(m, turn)
		emit(m)
	}
}
