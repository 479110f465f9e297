package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"voicegw/internal/conversation"
	"voicegw/protocol"
	"voicegw/transport/textmodel"
)

// errLeft is the cause of a turn's cancellation when no client waits for it.
var errLeft = errors.New("the client has left")

// message is a message being answered, or answered recently. It keeps its answer for each client that asks for it.
type message struct {
	// Fixed after enter.
	id     identity
	before *record       // left in memory by an earlier attempt; nil without one
	ended  chan struct{} // closed when the answer is complete
	// begin returns the context of the turn, which cancel ends.
	begin  func() context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex               // guards the fields below
	log      []protocol.ServerMessage // append-only: clients get copies
	more     chan struct{}            // closed and replaced whenever log grows
	clients  int
	leaving  bool // the last client has left; no client can join
	over     bool
	err      error // replaces all messages
	panicked any   // a panic of the turn, for the clients' goroutines
	rec      *record

	// Set by ended, guarded by Agent.mu.
	size  int // of rec, in bytes
	until time.Time
}

func (m *message) add(s protocol.ServerMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, s)
	m.wake()
}

// wake notifies the clients that the answer has grown. The caller must hold mu.
func (m *message) wake() {
	close(m.more)
	m.more = make(chan struct{})
}

func (m *message) end(rec *record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over, m.rec, m.err = true, rec, err
	if rec != nil {
		rec.Heard = false // set when a client has got all of it
	}
	m.wake()
	close(m.ended)
}

func (m *message) soFar() []protocol.ServerMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clip(m.log)
}

func (m *message) watched() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients > 0 && !m.leaving
}

// join adds a client; false if the message is over or being aborted.
func (m *message) join() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || m.leaving {
		return false
	}
	m.clients++
	return true
}

// leave removes a client whose context is done. The last client aborts the turn and then waits for its end.
func (m *message) leave() (last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || m.clients == 1 {
		m.leaving = true
		m.cancel(errLeft)
		return true
	}
	m.clients--
	return false
}

// follow sends a client that has joined the whole answer. Only the last client to leave waits for running calls.
func (m *message) follow(ctx context.Context, emit Emit) error {
	gone := ctx.Done()
	for told := 0; ; {
		m.mu.Lock()
		batch, over, more := m.log[told:], m.over, m.more
		m.mu.Unlock()
		for _, s := range batch {
			emit(protocol.Clone(s))
		}
		told += len(batch)
		switch {
		case len(batch) > 0:
		case over:
			return m.finish(ctx)
		default:
			select {
			case <-more:
			case <-gone:
				if gone = nil; !m.leave() {
					return nil
				}
			}
		}
	}
}

func (m *message) finish(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients--; m.clients <= 0 {
		m.log = nil // rec is enough from now on
	}
	if m.panicked != nil {
		panic(m.panicked)
	}
	if m.rec != nil && ctx.Err() == nil {
		m.rec.Heard = true
	}
	return m.err
}

// remains returns a copy of the record of an answered message, or nil if the turn never began.
func (m *message) remains() *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rec == nil {
		return nil
	}
	rec := *m.rec
	return &rec
}

// How long a repeated message is recognised.
const (
	hashedLife = 2 * time.Minute // for a message without an id
	namedLife  = 24 * time.Hour  // for a message with an id. The ledger remembers side effects equally long.
)

// MaxMessageID limits a message's id, in bytes.
const MaxMessageID = 256

type identity struct {
	key          string // a hash, equal for each attempt at a message
	content      string // a hash of the text. The same key with other content is an error.
	conversation string // as requested; may be empty
	named        bool   // key is the client's id or of a whole conversation: equal keys are the same message
	single       bool   // the message can be sent only once, because it answers an approval request
	life         time.Duration
}

// identify identifies a message by its id or, without one, by its conversation and content, which includes a client's
// history. An error wraps ErrMessage: part of the request is invalid JSON.
func identify(req Request) (identity, error) {
	said := struct {
		Message  string
		Parts    []textmodel.Part
		Token    string
		Approved bool
		Keeps    bool
		History  []textmodel.Message
		Settings map[string]json.RawMessage
		Most     int
		Tools    []textmodel.Tool
		Choice   json.RawMessage
		Parallel *bool
	}{req.Message, req.Parts, req.token(), req.Confirmation != nil && req.Confirmation.Approved, req.History != nil,
		quoted(req.History), req.Settings, req.MaxOutput, req.Tools, req.ToolChoice, req.Parallel}
	content, err := hashed(said)
	if err != nil {
		return identity{}, fmt.Errorf("%w: encoding the message as JSON: %w", ErrMessage, err)
	}
	id := identity{content: content, conversation: req.ConversationID, named: req.ID != "" || req.History != nil,
		single: req.Confirmation != nil, life: hashedLife}
	switch {
	case req.ID != "":
		id.life = namedLife
		id.key, err = hashed([]any{"id", req.scope(), req.Vouched, req.Scopes, req.ID})
	default:
		id.key, err = hashed([]any{"content", req.scope(), req.Vouched, req.Scopes, req.ConversationID, content})
	}
	return id, err
}

func (i identity) other(than identity) bool {
	return i.content != than.content || i.conversation != "" && than.conversation != "" && i.conversation != than.conversation
}

// scope is the user within whom messages are identified. An anonymous user is identified by a secret: the message's id
// or its conversation. Without a secret, each request counts as a new user.
func (r Request) scope() string {
	switch {
	case !r.User.Anonymous():
	case len(r.ID) >= conversation.MinSecret:
		return ""
	case len(r.ConversationID) >= conversation.MinSecret:
		return "anonymous:" + r.ConversationID // no user's name begins like this
	}
	return r.User.String()
}

func (r Request) token() string {
	if r.Confirmation == nil {
		return ""
	}
	return r.Confirmation.Token
}

// quoted encodes call arguments as JSON strings, because a client's arguments may be invalid JSON.
func quoted(history []textmodel.Message) []textmodel.Message {
	out := slices.Clone(history)
	for i := range out {
		out[i].Calls = slices.Clone(out[i].Calls)
		for j := range out[i].Calls {
			text, _ := json.Marshal(string(out[i].Calls[j].Args)) // a string: cannot fail
			out[i].Calls[j].Args = text
		}
	}
	return out
}

func hashed(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
