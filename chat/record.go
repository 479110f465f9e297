package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/logging"
	"voicegw/protocol"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// record is the state of a message, stored before a call with side effects, and at the end.
type record struct {
	Name         string `json:"name"` // random. It identifies the message in the ledger and in its conversation.
	Content      string `json:"content"`
	Conversation string `json:"conversation"`
	Turn         int    `json:"turn"`
	Done         bool   `json:"done"` // the message was answered. Otherwise it can be continued.
	// Heard means that a client got the whole answer, Wrote that a tool with side effects was called.
	Heard bool `json:"heard,omitempty"`
	Wrote bool `json:"wrote,omitempty"`
	// Begun means that Lead is set: the notices that precede the user's message.
	Begun   bool                 `json:"begun,omitempty"`
	Lead    []conversation.Entry `json:"lead,omitempty"`
	Refused bool                 `json:"refused,omitempty"` // the turn did not begin, because its confirmation was invalid
	Rounds  []round              `json:"rounds,omitempty"`  // the model's answers so far
	Usage   textmodel.Usage      `json:"usage"`
	At      time.Time            `json:"at"`

	events []protocol.ServerMessage // the messages sent to the client. Their secrets exist only in this process.
	rev    store.Revision
}

type round struct {
	At    time.Time       `json:"at"`
	Text  string          `json:"text,omitempty"`
	Calls []calledOnce    `json:"calls,omitempty"`
	Extra json.RawMessage `json:"extra,omitempty"`
}

func (r *record) add(at time.Time, reply textmodel.Reply) {
	next := round{At: at, Text: reply.Text, Extra: reply.Extra}
	for _, c := range reply.Calls {
		next.Calls = append(next.Calls, calledOnce{ID: c.ID, Name: c.Name, Args: string(c.Args), Extra: c.Extra})
	}
	r.Rounds = append(slices.Clip(r.Rounds), next)
}

func (r round) asked() []textmodel.ToolCall {
	var out []textmodel.ToolCall
	for _, c := range r.Calls {
		out = append(out, textmodel.ToolCall{ID: c.ID, Name: c.Name, Args: json.RawMessage(c.Args), Extra: c.Extra})
	}
	return out
}

// calledOnce is a call of a round. Envelope is its answer; nil means that the call must be made again.
type calledOnce struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Args     string          `json:"args"`
	Extra    json.RawMessage `json:"extra,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`
}

// in reports whether a request's conversation matches the record. A client may have learned its id since.
func (r *record) in(req Request) bool {
	return r == nil || r.Name == "" || req.ConversationID == "" || req.History != nil || req.ConversationID == r.Conversation
}

// left returns the record to keep after the turn, or nil if the turn never began.
func (r *record) left(err error) *record {
	if err != nil && !r.Begun && !r.Wrote {
		return nil
	}
	return r
}

// again reports whether a message without an id repeats the record's message: no other message followed, and the answer
// changed something or was not delivered whole. A message that can be sent only once is then refused (single).
func (r *record) again(c *conversation.Conversation, single bool) bool {
	at := r.Turn - 1
	if kept := r.keptIn(c); kept > 0 {
		at = kept
	}
	return c.Turns <= at && (!r.Done || r.Wrote && !single || !r.Heard)
}

func (r *record) keptIn(c *conversation.Conversation) int {
	for _, e := range c.Entries {
		if e.Message == r.Name {
			return e.Turn
		}
	}
	return 0
}

func (r *record) replay(m *message, req Request) {
	for _, s := range r.messages(req) {
		m.add(s)
	}
}

func (r *record) messages(req Request) []protocol.ServerMessage {
	out := slices.Clone(r.events)
	for i, s := range out {
		if e, ok := s.(*protocol.ConfirmationEnded); ok {
			whose := *e
			whose.Token = req.token() // not stored
			out[i] = &whose
		}
	}
	return out
}

// keepEvents stores the sent messages: all if the message is answered, otherwise those that remain valid when the turn
// continues without the calls in rerun.
func (r *record) keepEvents(all []protocol.ServerMessage, rerun map[string]bool) {
	whole := map[string]bool{}
	for _, s := range all {
		if s, ok := s.(*protocol.TextDone); ok {
			whole[s.ItemID] = true
		}
	}
	r.events = []protocol.ServerMessage{}
	for _, s := range all {
		if _, inside := s.(*protocol.InspectCall); inside || !r.Done && !lasts(s, whole, rerun) {
			continue // arguments and whole answers are not kept
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

// lasts reports whether a message of an aborted turn remains part of the answer when the turn continues.
func lasts(s protocol.ServerMessage, whole, rerun map[string]bool) bool {
	switch s := s.(type) {
	case *protocol.TurnStarted: // each attempt sends its own
		return false
	case *protocol.TextDelta:
		return whole[s.ItemID]
	case *protocol.ToolStarted:
		return !rerun[s.CallID]
	case *protocol.ToolProgress:
		return !rerun[s.CallID]
	case *protocol.ToolMessage:
		return !rerun[s.CallID]
	case *protocol.ToolEnded:
		return !rerun[s.CallID]
	case *protocol.Error, *protocol.TurnUsage, *protocol.Done:
		return false
	default:
		return true
	}
}

// found returns the newest record of a message, from this process or the store; nil if the message is new.
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
		a.opts.Logger.Error("decoding the record of a message failed; treating it as new", "error", err)
		return unknown, nil
	}
	if rec.Refused {
		return unknown, nil
	}
	rec.rev = rev
	return rec, nil
}

// write stores a record, even if the client has left. If the record is too long, it omits the sent messages.
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
				&protocol.Error{Code: protocol.CodeStoreUnavailable,
					Message: "This message was already answered, but its answer was too long to keep. Its actions were not repeated."},
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

// save stores a record. If the store has dropped the old one because the turn took too long, it creates a new one.
func (a *Agent) save(ctx context.Context, id identity, data []byte, rev store.Revision) (store.Revision, error) {
	next, err := a.opts.Answers.Save(ctx, id.key, data, rev, id.life)
	if rev == 0 || !errors.Is(err, store.ErrChanged) {
		return next, err
	}
	return a.opts.Answers.Save(ctx, id.key, data, 0, id.life)
}

type stored struct {
	record
	Events []json.RawMessage `json:"events,omitempty"`
}

// encode returns the record without secrets, for the store.
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
	return logging.Tokens(data), err
}

func decodeRecord(data []byte) (*record, error) {
	var in stored
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	for _, raw := range in.Events {
		if s, err := protocol.ParseServer(raw); err == nil { // otherwise written by a newer version
			in.events = append(in.events, s)
		}
	}
	return &in.record, nil
}

const mostRecord = 512 << 10

// Limits on the answers kept in memory.
const (
	mostKept      = 1000
	mostKeptBytes = 32 << 20
)

// ended records the end of an attempt and keeps its record for a while.
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

// forget drops expired records, and the oldest ones above the limits. The caller must hold mu.
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
