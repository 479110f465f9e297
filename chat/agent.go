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

	"voicegw/internal/conversation"
	"voicegw/internal/textutil"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/store"
)

// Agent is a text agent. It may be used concurrently.
type Agent struct {
	// Fixed after New.
	opts Options
	// markKey makes the marks of conversations. A conversation keeps its mark while the process
	// runs, so that a provider can cache the beginning of its prompt.
	markKey [32]byte
	idle    chan struct{} // closed when Drain was called and no Respond runs any more

	mu       sync.Mutex          // guards the following fields
	messages map[string]*message // in progress, or kept for a while; by key
	kept     []*message          // the messages that are over, oldest first
	keptSize int                 // size of all kept messages, in bytes
	// responding counts the running calls of Respond. draining refuses more of them; stopped says
	// that those that run are to end.
	responding        int
	draining, stopped bool
}

// New returns an Agent.
func New(opts Options) (*Agent, error) {
	if opts.Model == nil || opts.Executor == nil || opts.Conversations == nil {
		return nil, errors.New("chat: Options need Model, Executor and Conversations")
	}
	a := &Agent{opts: opts.withDefaults(), messages: make(map[string]*message), idle: make(chan struct{})}
	rand.Read(a.markKey[:]) // it never fails: crypto/rand ends the program instead
	return a, nil
}

// Sees reports whether messages may contain images.
func (a *Agent) Sees() bool { return a.opts.Vision }

// Request is one message of a user.
type Request struct {
	// ConversationID continues a conversation; empty begins one. conversation.ValidID must accept
	// it.
	ConversationID string
	// User is the user who sends the message; it must not be empty.
	User user.User
	// Agent names the persona that answers, and goes on with the conversation. If it is empty, that is the
	// conversation's own or, if no persona has that name any more, the default one.
	Agent string
	// TimeZone is the IANA name of the user's time zone; empty if it is not known.
	TimeZone string
	// Key is the ID of the principal whose credentials were shown; it may be empty. KeyMark and
	// KeyExpires are its Mark and its end (auth.Principal), for voice sessions that come of the turn.
	// Inspect means that the client may know what the turn costs; Inside that it is also shown
	// everything about each call of a tool (protocol.InspectCall).
	Key, KeyMark    string
	KeyExpires      time.Time
	Inspect, Inside bool
	// Parent is the span of the client's own that the message belongs to; zero without one.
	Parent protocol.TraceParent
	// Vouched means that a trusted caller named the user; Scopes are the caller's grants.
	Vouched bool
	Scopes  []string
	// Origin is the origin of the page that the user is on: a voice session offered in this turn
	// can be used only from there. It is empty if there is no page.
	Origin string
	// Message is the user's text. Empty with a Confirmation.
	Message string
	// Parts are the pieces of a Message with images, as in Message.Parts; nil without images.
	// They are allowed only if Agent.Sees.
	Parts []Part
	// History is what was said before, for a client that keeps the conversation itself; then
	// nothing is loaded or stored. Nil means that the conversation is stored here.
	History []Message
	// ID is the client's own name for this message, which stays the same when it sends the
	// message again: at most MaxMessageID bytes of UTF-8 without control characters. If it is
	// empty, the text, the conversation and the user identify the message for two minutes.
	ID string
	// Confirmation answers a question; Message is then empty.
	Confirmation *Confirmation
	// Settings are the client's own settings for the model: fields of Chat Completions such as
	// temperature, in JSON. May be nil.
	Settings map[string]json.RawMessage
	// Tools are the client's own tools, in addition to the gateway's. A call of one ends the turn
	// with a protocol.ToolCall; the client's next request has its answer at the end of History,
	// and an empty Message. Tools require History.
	Tools []Tool
	// ToolChoice (in JSON) and Parallel are tool_choice and parallel_tool_calls of Chat
	// Completions. They apply to the model's first answer, but "none" applies to all.
	ToolChoice json.RawMessage
	Parallel   *bool
	// MaxOutput is the maximum number of tokens in one answer of the model, which cannot exceed
	// the model's own limit; zero means that limit.
	MaxOutput int
}

// says reports whether the user says something in this turn, in words or images.
func (r Request) says() bool { return r.Message != "" || len(r.Parts) > 0 }

// hasContent reports whether a person sees anything in the message: a text that is not blank, or an image.
func (r Request) hasContent() bool {
	return !textutil.IsBlank(r.Message) || slices.ContainsFunc(r.Parts, func(p Part) bool { return p.Image != "" || !textutil.IsBlank(p.Text) })
}

// hasImages reports whether there is an image anywhere in the request.
func (r Request) hasImages() bool {
	return len(r.Parts) > 0 || slices.ContainsFunc(r.History, func(m Message) bool { return len(m.Parts) > 0 })
}

// Confirmation is the user's answer to a confirmation.request.
type Confirmation struct {
	Token    string
	Approved bool
}

// Emit receives the messages of a turn, one after another.
type Emit func(protocol.ServerMessage)

// leaseTime is how long a conversation stays reserved if its node dies.
const leaseTime = time.Minute

// saveTime bounds the writes at the end of a turn, which happen even if the client has left.
const saveTime = 5 * time.Second

// saveTries is how often a turn is saved to a conversation that changes meanwhile.
const saveTries = 8

// Respond answers one message. It passes what happens to emit, on the calling goroutine; the
// last message is a Done. An error comes before the first message and replaces all of them:
// ErrMessage, ErrReused, ErrBusy, ErrUnknown, ErrStore, ErrDraining, or a confirmation's error
// (store.ErrUnknown, ErrUsed, ErrExpired).
//
// If the same message comes again, it joins the answer in progress from its beginning, or gets
// the finished answer; docs/chat.md defines when two messages are the same. If ctx ends and no
// other client waits for the answer, the turn is aborted: tools that can be stopped are stopped,
// the others finish and are recorded, and Respond returns after them. A failed or aborted turn
// continues where it stopped when the message comes again: no call is made twice.
func (a *Agent) Respond(ctx context.Context, req Request, emit Emit) error {
	if err := a.check(req); err != nil {
		return err
	}
	id, err := identify(req)
	if err != nil {
		return err
	}
	over, err := a.respond()
	if err != nil {
		return err
	}
	defer over()
	m, mine, err := a.enter(ctx, id)
	if err != nil {
		return err
	}
	if mine {
		go a.serve(m, req)
	}
	return m.follow(ctx, shownTo(req, emit))
}

// shownTo leaves out what only a client that looks inside may see: the answer to a message may be
// followed by others.
func shownTo(req Request, emit Emit) Emit {
	if req.Inside {
		return emit
	}
	return func(m protocol.ServerMessage) {
		if _, inside := m.(*protocol.InspectCall); !inside {
			emit(m)
		}
	}
}

// keep saves a turn to its conversation, even if the client has left. It replaces what an earlier
// attempt at the message has left there. If another node has taken the conversation meanwhile,
// because this one seemed to be gone, or has answered the message, keep saves nothing.
func (a *Agent) keep(ctx context.Context, req Request, held store.Held, t *turn, c *conversation.Conversation, rev store.Revision, entries []conversation.Entry) error {
	message, calls := t.rec.Name, t.calls.Book().Carry()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for try := range saveTries {
		c.Entries = slices.DeleteFunc(c.Entries, func(e conversation.Entry) bool { return e.Message == message })
		if try == 0 {
			c.Append(time.Now(), entries...)
		} else {
			c.Merge(time.Now(), entries...)
		}
		c.Policy, c.Agent = calls, t.persona.Name
		_, err := a.opts.Conversations.Save(ctx, c, rev)
		if !errors.Is(err, store.ErrChanged) {
			return err
		}
		// The lease keeps other messages away, but not a voice session of the conversation that
		// ended meanwhile, nor an answer over the API.
		if err := held.Check(ctx); err != nil {
			return err
		}
		if err := a.answeredElsewhere(ctx, t); err != nil {
			return err
		}
		if c, rev, err = a.load(ctx, req); err != nil {
			return err
		}
	}
	return store.ErrChanged
}

// answeredElsewhere returns store.ErrFenced if another node has written what became of a turn's
// message.
func (a *Agent) answeredElsewhere(ctx context.Context, t *turn) error {
	if a.opts.Answers == nil {
		return nil
	}
	_, rev, err := a.opts.Answers.Load(ctx, t.m.id.key)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return nil
	case err == nil && rev != t.rec.rev:
		return store.ErrFenced
	}
	return err
}

// errTurnTime ends a turn that takes too long.
var errTurnTime = errors.New("the turn took too long")

// check refuses a request from which no turn can be made.
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
	case req.Confirmation == nil && !req.hasContent():
		return fmt.Errorf("%w: the message is empty", ErrMessage)
	case n > a.opts.MaxMessage:
		return fmt.Errorf("%w: the message has %d characters, at most %d are taken", ErrMessage, n, a.opts.MaxMessage)
	}
	return a.checkTools(req)
}

// load loads the conversation of a request, or begins it.
func (a *Agent) load(ctx context.Context, req Request) (*conversation.Conversation, store.Revision, error) {
	c, rev, err := a.opts.Conversations.Load(ctx, req.ConversationID)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return conversation.New(req.ConversationID, req.User.String(), a.persona(req.Agent, "").Name, time.Now()), rev, nil
	case err != nil:
		return nil, rev, fmt.Errorf("%w: %w", ErrStore, err)
	case !c.OwnedBy(req.User):
		return nil, rev, ErrUnknown // nothing about another user's conversation is revealed
	}
	return c, rev, nil
}

// safeEmit lets the turn and its tools emit concurrently.
func safeEmit(emit Emit, turn int) Emit {
	var mu sync.Mutex
	return func(m protocol.ServerMessage) {
		mu.Lock()
		defer mu.Unlock()
		protocol.SetTurn(m, turn)
		emit(m)
	}
}
