package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"voicegw/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/store"
)

// Agent is a text agent. It may be used by any number of goroutines.
type Agent struct {
	// Fixed after New.
	opts Options
	// markKey makes the marks of conversations: each keeps its own while the process runs, so
	// that a provider can cache what begins with it.
	markKey [32]byte

	mu       sync.Mutex          // guards the following fields
	messages map[string]*message // under way, or kept for a while; by key
	kept     []*message          // those that are over, the oldest first
	keptSize int                 // of all kept, in bytes
}

// New returns an Agent.
func New(opts Options) (*Agent, error) {
	if opts.Model == nil || opts.Executor == nil || opts.Conversations == nil {
		return nil, errors.New("chat: Options need Model, Executor and Conversations")
	}
	a := &Agent{opts: opts.withDefaults(), messages: make(map[string]*message)}
	rand.Read(a.markKey[:]) // it never fails: crypto/rand ends the program instead
	return a, nil
}

// Name is what requests ask for.
func (a *Agent) Name() string { return a.opts.Name }

// Sees says whether messages may have images.
func (a *Agent) Sees() bool { return a.opts.Vision }

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
	// Parts are those of Message where it has images, as in Message.Parts; nil where it has
	// none. Only for a model that sees (Agent.Sees).
	Parts []Part
	// History is what was said before, for a client that keeps the conversation itself:
	// then nothing is loaded or kept. Nil for a conversation that is kept here.
	History []Message
	// ID is the client's own name for this message, which it keeps when it sends the message
	// again: at most MaxMessageID bytes of UTF-8 without control characters. Empty: what is
	// said, where and by whom names it, for two minutes.
	ID string
	// Confirmation answers a question instead of saying something.
	Confirmation *Confirmation
	// Settings are the client's own for the model, fields of Chat Completions such as
	// temperature, in JSON. Nil means none.
	Settings map[string]json.RawMessage
	// Tools are the client's own, beside the gateway's: a call of one ends the turn with a
	// protocol.ToolCall, and the client's next request brings its answer at the end of
	// History, with an empty Message. Only with History.
	Tools []Tool
	// ToolChoice and Parallel are tool_choice, in JSON, and parallel_tool_calls of Chat
	// Completions. They are for the first answer of the model: "none" for all.
	ToolChoice json.RawMessage
	Parallel   *bool
	// MaxOutput is the most tokens of one answer of the model; zero for the model's own
	// limit, which is never exceeded.
	MaxOutput int
}

// says whether the user says something in this turn, in words or images.
func (r Request) says() bool { return r.Message != "" || len(r.Parts) > 0 }

// hasImages says whether an image stands anywhere in the request.
func (r Request) hasImages() bool {
	return len(r.Parts) > 0 || slices.ContainsFunc(r.History, func(m Message) bool { return len(m.Parts) > 0 })
}

// Confirmation is the user's answer to a confirmation.request.
type Confirmation struct {
	Token    string
	Approved bool
}

// Emit is given the messages of a turn, one after another.
type Emit func(protocol.ServerMessage)

// leaseTime is how long a conversation stays taken if its node dies.
const leaseTime = time.Minute

// saveTime bounds what is written at the end of a turn, whoever has gone by then.
const saveTime = 5 * time.Second

// saveTries is how often a turn is written into a conversation that changes meanwhile.
const saveTries = 8

// Respond answers one message. What happens is told to emit, from this goroutine; the last
// message is a Done. An error comes before the first message and instead of all: ErrMessage,
// ErrReused, ErrBusy, ErrUnknown, ErrStore, or that of a confirmation (store.ErrUnknown,
// ErrUsed, ErrExpired).
//
// The same message again joins the answer that is under way, from its beginning, or gets the
// one that was given; docs/chat.md says what the same message is. When ctx ends, and nobody
// else waits for the answer, the turn is broken off: tools that can be stopped are stopped,
// others finish and are recorded, and Respond returns after them. What has failed or was broken
// off goes on where it stopped when the message comes again: no call is made twice.
func (a *Agent) Respond(ctx context.Context, req Request, emit Emit) error {
	if err := a.check(req); err != nil {
		return err
	}
	id, err := identify(req)
	if err != nil {
		return err
	}
	m, mine, err := a.enter(ctx, id)
	if err != nil {
		return err
	}
	if mine {
		go a.serve(m, req)
	}
	return m.follow(ctx, emit)
}

// keep writes what was said in a turn into its conversation, whoever has gone by then.
// What an earlier try of the message has left there is replaced.
func (a *Agent) keep(ctx context.Context, req Request, c *conversation.Conversation, rev store.Revision, message string, calls json.RawMessage, entries []conversation.Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for try := range saveTries {
		c.Entries = slices.DeleteFunc(c.Entries, func(e conversation.Entry) bool { return e.Message == message })
		if try == 0 {
			c.Append(time.Now(), entries...)
		} else {
			c.Merge(time.Now(), entries...)
		}
		c.Policy = calls
		_, err := a.opts.Conversations.Save(ctx, c, rev)
		if !errors.Is(err, store.ErrChanged) {
			return err
		}
		// The lease keeps other messages away, not a voice session of the conversation
		// that has ended meanwhile, nor an answer over the API.
		if c, rev, err = a.load(ctx, req); err != nil {
			return err
		}
	}
	return store.ErrChanged
}

// errTurnTime ends a turn that takes too long.
var errTurnTime = errors.New("the turn took too long")

// check refuses what no turn can be made of.
func (a *Agent) check(req Request) error {
	n := utf8.RuneCountInString(req.Message)
	switch {
	case req.User.IsZero():
		return fmt.Errorf("%w: there is no user", ErrMessage)
	case len(req.ID) > MaxMessageID || !utf8.ValidString(req.ID) || strings.ContainsFunc(req.ID, unicode.IsControl):
		return fmt.Errorf("%w: the id of the message (message_id, Idempotency-Key) must be at most %d bytes of text without control characters", ErrMessage, MaxMessageID)
	case req.ConversationID == "":
	case !conversation.ValidID(req.ConversationID):
		return fmt.Errorf("%w: conversation_id must be 1 to %d letters, digits, dots, hyphens and underscores", ErrMessage, conversation.MaxID)
	case !conversation.May(req.User, req.ConversationID):
		return fmt.Errorf("%w: conversation_id must have at least %d characters, drawn at random, where no user is named: whoever knows it goes on with the conversation. Leave it out, and one is made", ErrMessage, conversation.MinSecret)
	}
	switch {
	case req.Confirmation != nil && req.says():
		return fmt.Errorf("%w: message and confirmation cannot come together", ErrMessage)
	case !a.opts.Vision && req.hasImages():
		return fmt.Errorf("%w: the model sees no images", ErrMessage)
	case !req.says() && len(req.History) > 0 && req.History[len(req.History)-1].Role == RoleTool:
	case req.Confirmation == nil && len(req.Parts) == 0 && strings.TrimSpace(req.Message) == "":
		return fmt.Errorf("%w: the message is empty", ErrMessage)
	case n > a.opts.MaxMessage:
		return fmt.Errorf("%w: the message has %d characters, at most %d are taken", ErrMessage, n, a.opts.MaxMessage)
	}
	return a.checkTools(req)
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
	return func(m protocol.ServerMessage) {
		mu.Lock()
		defer mu.Unlock()
		protocol.SetTurn(m, turn)
		emit(m)
	}
}
