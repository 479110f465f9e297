package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"voicegw/conversation"
	"voicegw/internal/redact"
	"voicegw/protocol"
	"voicegw/protocol/errcode"
	"voicegw/store"
)

// record is what is known of a message: its answer, or how far a turn has come that was broken
// off. It is written to the store before a call that changes something, and at the end.
type record struct {
	// Name is drawn for each message, and names it in the ledger and in its conversation.
	Name         string `json:"name"`
	Content      string `json:"content"`
	Conversation string `json:"conversation"`
	Turn         int    `json:"turn"`
	// Done says that the message was answered. Otherwise it can be gone on with.
	Done bool `json:"done"`
	// Heard says that a client was sent all of the answer, and Wrote that a tool which
	// changes something was called.
	Heard bool `json:"heard,omitempty"`
	Wrote bool `json:"wrote,omitempty"`
	// Begun says that Lead is what the model is told before anything else, beside what the
	// user says.
	Begun bool                 `json:"begun,omitempty"`
	Lead  []conversation.Entry `json:"lead,omitempty"`
	// Refused says that the message began no turn: its confirmation cannot be answered.
	Refused bool `json:"refused,omitempty"`
	// Rounds are the model's answers so far.
	Rounds []round   `json:"rounds,omitempty"`
	Usage  Usage     `json:"usage"`
	At     time.Time `json:"at"`

	// events are what was told; this process alone keeps their secrets.
	events []protocol.ServerMessage
	rev    store.Revision
}

// round is one answer of the model.
type round struct {
	At    time.Time    `json:"at"`
	Text  string       `json:"text,omitempty"`
	Calls []calledOnce `json:"calls,omitempty"`
	// Extra is Reply.Extra.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// add notes an answer of the model.
func (r *record) add(at time.Time, reply Reply) {
	next := round{At: at, Text: reply.Text, Extra: reply.Extra}
	for _, c := range reply.Calls {
		next.Calls = append(next.Calls, calledOnce{ID: c.ID, Name: c.Name, Args: string(c.Args), Extra: c.Extra})
	}
	r.Rounds = append(slices.Clip(r.Rounds), next)
}

// asked are the calls as the model made them.
func (r round) asked() []ToolCall {
	var out []ToolCall
	for _, c := range r.Calls {
		out = append(out, ToolCall{ID: c.ID, Name: c.Name, Args: json.RawMessage(c.Args), Extra: c.Extra})
	}
	return out
}

// calledOnce is a call of a round, and its answer; nil if that has to be asked for again.
type calledOnce struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Args     string          `json:"args"`
	Extra    json.RawMessage `json:"extra,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`
}

// in says whether a request may be the message of the record by its conversation: a client
// that has begun one may have learned its id meanwhile.
func (r *record) in(req Request) bool {
	return r == nil || r.Name == "" || req.ConversationID == "" || req.History != nil || req.ConversationID == r.Conversation
}

// left is the record of a turn after its end, or nil if it never began.
func (r *record) left(err error) *record {
	if err != nil && !r.Begun && !r.Wrote {
		return nil
	}
	return r
}

// again says whether a message that its client has not named is the one of the record, as its
// conversation stands now. It is not, if something was said since; nor if its answer was sent
// whole and changed nothing: then a user may say the same twice. What can be sent once anyway
// (single) is refused then, whatever it has changed.
func (r *record) again(c *conversation.Conversation, single bool) bool {
	at := r.Turn - 1
	if kept := r.keptIn(c); kept > 0 {
		at = kept
	}
	return c.Turns <= at && (!r.Done || r.Wrote && !single || !r.Heard)
}

// keptIn is the turn under which a conversation has the message; 0 where it has not.
func (r *record) keptIn(c *conversation.Conversation) int {
	for _, e := range c.Entries {
		if e.Message == r.Name {
			return e.Turn
		}
	}
	return 0
}

// replay tells the answer once more.
func (r *record) replay(m *message, req Request) {
	for _, s := range r.told(req) {
		m.add(s)
	}
}

// told are the messages of the record.
func (r *record) told(req Request) []protocol.ServerMessage {
	out := slices.Clone(r.events)
	for i, s := range out {
		if e, ok := s.(*protocol.ConfirmationEnded); ok {
			whose := *e
			whose.Token = req.token() // which is not kept
			out[i] = &whose
		}
	}
	return out
}

// tell takes over what was told so far: all of it when the message is answered, else what
// stands for good, without the calls that will be made again. Pieces of text are put together.
func (r *record) tell(all []protocol.ServerMessage, anew map[string]bool) {
	whole := map[string]bool{}
	for _, s := range all {
		if s, ok := s.(*protocol.TextDone); ok {
			whole[s.ItemID] = true
		}
	}
	r.events = []protocol.ServerMessage{}
	for _, s := range all {
		if !r.Done && !lasts(s, whole, anew) {
			continue
		}
		if piece, ok := s.(*protocol.TextDelta); ok && len(r.events) > 0 {
			if last, ok := r.events[len(r.events)-1].(*protocol.TextDelta); ok && last.ItemID == piece.ItemID {
				joined := *last
				joined.Text += piece.Text
				r.events[len(r.events)-1] = &joined
				continue
			}
		}
		r.events = append(r.events, s)
	}
}

// lasts says whether a message of a turn that was broken off belongs to the answer still when
// the turn goes on.
func lasts(s protocol.ServerMessage, whole, anew map[string]bool) bool {
	switch s := s.(type) {
	case *protocol.TurnStarted: // each try begins with one of its own
		return false
	case *protocol.TextDelta:
		return whole[s.ItemID]
	case *protocol.ToolStarted:
		return !anew[s.CallID]
	case *protocol.ToolProgress:
		return !anew[s.CallID]
	case *protocol.ToolEnded:
		return !anew[s.CallID]
	case *protocol.Error, *protocol.TurnUsage, *protocol.Done:
		return false
	default:
		return true
	}
}

// found returns what is known of a message: in this process, or in the store where that knows
// more. Nil if nobody knows it.
func (a *Agent) found(ctx context.Context, m *message) (*record, error) {
	if a.opts.Answers == nil {
		return m.before, nil
	}
	data, rev, err := a.opts.Answers.Load(ctx, m.id.key)
	switch {
	case errors.Is(err, store.ErrUnknown):
		if m.before != nil {
			m.before.rev = 0
		}
		return m.before, nil
	case err != nil && m.before == nil:
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	case err != nil, m.before != nil && m.before.rev >= rev:
		return m.before, nil
	}
	unknown := &record{rev: rev, Content: m.id.content}
	rec, err := decodeRecord(data)
	if err != nil || rec.Name == "" {
		a.opts.Logger.Error("what became of a message cannot be read; it counts as a new one", "error", err)
		return unknown, nil
	}
	if rec.Refused {
		return unknown, nil
	}
	rec.rev = rev
	return rec, nil
}

// write keeps a record in the store, whoever has gone by then. One that is too long is kept
// without what was told.
func (a *Agent) write(ctx context.Context, id identity, rec *record) error {
	rec.At = time.Now().UTC()
	data, err := rec.encode()
	if err != nil || a.opts.Answers == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	rev, err := rec.rev, store.ErrTooBig
	if len(data) <= mostRecord {
		rev, err = a.save(ctx, id, data, rec.rev)
	}
	if errors.Is(err, store.ErrTooBig) {
		short := *rec
		short.Rounds, short.events = nil, nil
		if rec.Done {
			short.events = []protocol.ServerMessage{
				&protocol.Error{Code: errcode.StoreUnavailable, Message: "This message was answered before, and the answer was too long to be kept. What it did was done once."},
				&protocol.Done{ConversationID: rec.Conversation, Status: protocol.DoneFailed},
			}
		}
		if data, err = short.encode(); err == nil {
			rev, err = a.save(ctx, id, data, rec.rev)
		}
	}
	if err == nil {
		rec.rev = rev
	}
	return err
}

// save stores what became of a message. What the store has forgotten since, because the turn
// took longer than it keeps it, is stored anew.
func (a *Agent) save(ctx context.Context, id identity, data []byte, rev store.Revision) (store.Revision, error) {
	next, err := a.opts.Answers.Save(ctx, id.key, data, rev, id.life)
	if rev == 0 || !errors.Is(err, store.ErrChanged) {
		return next, err
	}
	return a.opts.Answers.Save(ctx, id.key, data, 0, id.life)
}

// stored is a record as the store has it.
type stored struct {
	record
	Events []json.RawMessage `json:"events,omitempty"`
}

// encode is the record as it may be kept: without what opens something.
func (r *record) encode() ([]byte, error) {
	out := stored{record: *r}
	for _, s := range r.events {
		switch e := s.(type) {
		case *protocol.ConfirmationRequest, *protocol.VoiceSessionStart:
			continue
		case *protocol.ConfirmationEnded:
			without := *e
			without.Token, s = "", &without
		}
		raw, err := protocol.EncodeServer(int64(len(out.Events)+1), protocol.Clone(s))
		if err != nil {
			return nil, err
		}
		out.Events = append(out.Events, raw)
	}
	data, err := json.Marshal(out)
	return redact.Tokens(data), err
}

// decodeRecord reads what encode has written.
func decodeRecord(data []byte) (*record, error) {
	var in stored
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	for _, raw := range in.Events {
		if s, err := protocol.ParseServer(raw); err == nil { // else of a version that knew more
			in.events = append(in.events, s)
		}
	}
	return &in.record, nil
}

// mostRecord is the longest record that the store is given, in bytes.
const mostRecord = 512 << 10

// The bounds of what this process keeps of answers.
const (
	mostKept      = 1000
	mostKeptBytes = 32 << 20
)

// ended notes that a message has had its try, and keeps what became of it for a while.
func (a *Agent) ended(m *message, rec *record, err error) {
	size := 0
	if rec != nil {
		if data, err := rec.encode(); err == nil {
			size = len(data)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m.end(rec, err)
	if rec == nil {
		delete(a.messages, m.id.key)
		return
	}
	m.size = size
	m.until = time.Now().Add(hashedLife)
	if a.opts.Answers == nil {
		m.until = time.Now().Add(m.id.life)
	}
	a.kept, a.keptSize = append(a.kept, m), a.keptSize+m.size
	a.forget(time.Now())
}

// forget drops what was kept long enough, and the oldest where there is too much; mu is held.
func (a *Agent) forget(now time.Time) {
	n := 0
	for i, m := range a.kept {
		if len(a.kept)-i <= mostKept && a.keptSize <= mostKeptBytes && now.Before(m.until) {
			break
		}
		if a.messages[m.id.key] == m {
			delete(a.messages, m.id.key)
		}
		a.keptSize -= m.size
		n = i + 1
	}
	if n > 0 {
		a.kept = append([]*message{}, a.kept[n:]...)
	}
}
