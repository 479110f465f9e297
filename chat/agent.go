// Package chat implements the text agent. It sends a user's message to a chat model, runs the tools that the model
// calls under the same policy and ledger as a voice session, and reports the turn in voicegw.v1 messages. Package
// chat/completions implements the models, and package gateway the HTTP endpoints.
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
	"voicegw/transport/textmodel"
)

// Agent is a text agent. It is safe for concurrent use.
type Agent struct {
	// Fixed after New.
	opts Options
	// markKey derives each conversation's mark. A conversation keeps its mark while the process runs, so that
	// providers can cache the start of its prompt.
	markKey [32]byte
	idle    chan struct{} // closed after Drain, when no Respond runs

	mu       sync.Mutex          // guards the fields below
	messages map[string]*message // by key: being answered, or answered recently
	kept     []*message          // answered messages, oldest first
	keptSize int                 // in bytes
	// responding counts the running calls of Respond. After draining no call may begin; after stopped the running
	// calls must end.
	responding        int
	draining, stopped bool
}

// New returns an Agent.
func New(opts Options) (*Agent, error) {
	if opts.Model == nil || opts.Executor == nil || opts.Conversations == nil {
		return nil, errors.New("chat: Options need Model, Executor and Conversations")
	}
	a := &Agent{opts: opts.withDefaults(), messages: make(map[string]*message), idle: make(chan struct{})}
	rand.Read(a.markKey[:]) // never fails: crypto/rand aborts the program instead
	return a, nil
}

// Sees reports whether messages may contain images.
func (a *Agent) Sees() bool { return a.opts.Vision }

// Request is one message from a user.
type Request struct {
	ConversationID string    // continues a conversation; empty starts one. It must satisfy conversation.ValidID.
	User           user.User // sent the message; required
	Agent          string    // the persona that answers from now on; empty means the conversation's or the default
	TimeZone       string    // an IANA name; empty if unknown
	// Key is the ID of the authenticated principal; may be empty. KeyMark and KeyExpires are its Mark and expiry
	// (auth.Principal), for voice sessions that this turn opens. Inspect lets the client see the turn's cost, Inside
	// the details of each tool call (protocol.InspectCall).
	Key, KeyMark    string
	KeyExpires      time.Time
	Inspect, Inside bool
	Parent          protocol.TraceParent // the client's trace span; zero without one
	// Vouched means that a trusted caller named the user. Scopes are the caller's grants.
	Vouched bool
	Scopes  []string
	Origin  string              // the origin of the user's page, or empty: an offered voice session works only from there
	Message string              // the user's text; empty with a Confirmation
	Parts   []textmodel.Part    // the pieces of a message with images, otherwise nil. They require Agent.Sees.
	History []textmodel.Message // the earlier messages, if the client keeps the conversation; nil means that it is stored here
	// ID identifies the message when the client repeats it: at most MaxMessageID bytes of UTF-8 without control
	// characters. If empty, the text, conversation and user identify the message for two minutes.
	ID           string
	Confirmation *Confirmation              // answers an approval request; Message must be empty
	Settings     map[string]json.RawMessage // fields of Chat Completions such as temperature, in JSON; may be nil
	// Tools are the client's own tools, in addition to the gateway's. A call to one ends the turn with a
	// protocol.ToolCall. The client's next request has the result at the end of History and an empty Message. Tools
	// require History.
	Tools []textmodel.Tool
	// ToolChoice (JSON) and Parallel are tool_choice and parallel_tool_calls of Chat Completions. They apply to the
	// model's first answer, except that "none" applies to all.
	ToolChoice json.RawMessage
	Parallel   *bool
	MaxOutput  int // limits the tokens of each model answer, below the model's own limit; zero means that limit
}

func (r Request) says() bool { return r.Message != "" || len(r.Parts) > 0 }

func (r Request) hasContent() bool {
	return !textutil.IsBlank(r.Message) || slices.ContainsFunc(r.Parts,
		func(p textmodel.Part) bool { return p.Image != "" || !textutil.IsBlank(p.Text) })
}

func (r Request) hasImages() bool {
	return len(r.Parts) > 0 || slices.ContainsFunc(r.History, func(m textmodel.Message) bool { return len(m.Parts) > 0 })
}

// Confirmation is the user's answer to a confirmation.request.
type Confirmation struct {
	Token    string
	Approved bool
}

// Emit receives the messages of a turn, one at a time.
type Emit func(protocol.ServerMessage)

// leaseTime is how long a conversation stays reserved after its node dies.
const leaseTime = time.Minute

// saveTime limits the writes at the end of a turn. They happen even if the client has left.
const saveTime = 5 * time.Second

// saveTries limits the retries of a save while the conversation keeps changing.
const saveTries = 8

// Respond answers one message. It calls emit on the calling goroutine; the last message is a Done. An error is
// returned before the first message: ErrMessage, ErrReused, ErrBusy, ErrUnknown, ErrStore, ErrDraining, or a
// confirmation error (store.ErrUnknown, ErrUsed, ErrExpired).
//
// A repeated message joins the answer in progress from its beginning, or gets the finished answer; docs/chat.md
// defines when two messages are the same. If ctx ends and no other client waits, the turn is aborted: tools that can
// be stopped are stopped, the others finish and are recorded, and Respond then returns. If the message is sent again,
// a failed or aborted turn continues where it stopped, without repeating any call.
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

// shownTo drops the messages for clients that inspect calls unless this client does.
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

// keep saves a turn, even if the client has left, in place of earlier attempts. It saves nothing if another node has
// taken over the conversation or answered the message.
func (a *Agent) keep(ctx context.Context, req Request, held store.Held, t *turn, c *conversation.Conversation,
	rev store.Revision, entries []conversation.Entry) error {
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
		// The lease excludes other messages, but neither a voice session that ends now nor an approval over the API.
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

// answeredElsewhere returns store.ErrFenced if another node has written the message's record.
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

var errTurnTime = errors.New("the turn took too long")

func (a *Agent) check(req Request) error {
	n := utf8.RuneCountInString(req.Message)
	switch {
	case req.User.IsZero():
		return fmt.Errorf("%w: no user", ErrMessage)
	case len(req.ID) > MaxMessageID || !utf8.ValidString(req.ID) || strings.ContainsFunc(req.ID, unicode.IsControl):
		return fmt.Errorf("%w: the message's id (message_id, Idempotency-Key) must be at most %d bytes of text without "+
			"control characters", ErrMessage, MaxMessageID)
	case req.ConversationID == "":
	case !conversation.ValidID(req.ConversationID):
		return fmt.Errorf("%w: conversation_id must be 1 to %d letters, digits, dots, hyphens and underscores", ErrMessage,
			conversation.MaxID)
	case !conversation.May(req.User, req.ConversationID):
		return fmt.Errorf("%w: without a user, conversation_id must be a random string of at least %d characters, because "+
			"anyone who knows it can continue the conversation; leave it out to get one", ErrMessage, conversation.MinSecret)
	}
	switch {
	case req.Confirmation != nil && req.says():
		return fmt.Errorf("%w: message and confirmation are mutually exclusive", ErrMessage)
	case !a.opts.Vision && req.hasImages():
		return fmt.Errorf("%w: the model doesn't accept images", ErrMessage)
	case !req.says() && len(req.History) > 0 && req.History[len(req.History)-1].Role == textmodel.RoleTool:
	case req.Confirmation == nil && !req.hasContent():
		return fmt.Errorf("%w: the message is empty", ErrMessage)
	case n > conversation.MaxText:
		return fmt.Errorf("%w: the message has %d characters; the limit is %d", ErrMessage, n, conversation.MaxText)
	}
	return a.checkTools(req)
}

func (a *Agent) load(ctx context.Context, req Request) (*conversation.Conversation, store.Revision, error) {
	c, rev, err := a.opts.Conversations.Load(ctx, req.ConversationID)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return conversation.New(req.ConversationID, req.User.String(), a.persona(req.Agent, "").Name, time.Now()), rev, nil
	case err != nil:
		return nil, rev, fmt.Errorf("%w: %w", ErrStore, err)
	case !c.OwnedBy(req.User):
		return nil, rev, ErrUnknown // reveals nothing about another user's conversation
	}
	return c, rev, nil
}

func safeEmit(emit Emit, turn int) Emit {
	var mu sync.Mutex
	return func(m protocol.ServerMessage) {
		mu.Lock()
		defer mu.Unlock()
		protocol.SetTurn(m, turn)
		emit(m)
	}
}

// Errors that Respond returns before it emits a message. The gateway turns them into texts.
var (
	// ErrBusy: another message of the conversation is being answered.
	ErrBusy    = errors.New("chat: the conversation is being answered already")
	ErrUnknown = errors.New("chat: no such conversation") // the user has no such conversation
	ErrMessage = errors.New("chat: invalid request")      // the request is invalid
	// ErrReused: the message's id was already used for another message.
	ErrReused   = errors.New("chat: the message id was used for another message")
	ErrStore    = errors.New("chat: the store is unavailable")     // the conversation cannot be loaded or saved
	ErrDraining = errors.New("chat: the gateway is shutting down") // the process is shutting down
)
