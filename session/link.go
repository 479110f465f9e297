package session

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"voicegw/audio"
	"voicegw/transport"
)

// modelSide is the session's state that concerns its model and outlives each connection.
type modelSide struct {
	linked   atomic.Pointer[link] // stored under mu, and while nothing sends to the model
	lookback *lookback            // fixed; nil if the session ends with its first connection
	// redial opens connections for the current agent; nil if the session ends with its first one. It is stored under mu.
	redial atomic.Pointer[redialer]
	parts  struct { // the first values of lookback and redial
		look   lookback
		redial redialer
	}

	// Guarded by mu.
	relink   *relink   // nil while the session keeps its link
	handover *handover // nil unless the session is being handed over
}

// link is a session's connection to a model. A session has at most one at a time, which its field linked names; each
// has a higher gen than the previous one. Events of an older link are dropped under mu.
//
// An adapter's ids are unique within one connection only. The link makes them unique within the session: it alone adds
// prefix to each id from the model, and removes it from each id to the model.
type link struct {
	// Fixed after begin.
	s        *session
	gen      int // counts the session's links from 1
	conn     transport.Conn
	prefix   string // empty for the first link, then l2., l3. and so on
	offsetMS int64  // where its audio begins on the client's audio clock
	observe  func(Event)
	ownRate  int // of the model's audio that states no rate, in Hz

	// Guarded by mu.
	replaced bool  // it is no longer the session's
	failed   error // the first error of the connection

	// over is done, and isOver set, when hear has seen the connection's end.
	over   sync.WaitGroup
	isOver atomic.Bool

	skipped sync.Once // reports the skipped messages

	reports atomic.Bool // the model has reported usage, on this link or an earlier one

	// Owned by hear.
	ended       bool
	outRate     int              // of the model's latest audio, in Hz
	resampleOut *audio.Resampler // from outRate; nil if the rates are equal
	downBuf     []byte
	spoken      named  // the item of the last audio
	item        string // the item that the model is speaking; empty between items
	userDraft   draft
	modelDraft  draft
}

// named is an id of the model and the session's name for it.
type named struct{ theirs, ours string }

// begin must be called first. It does not make l the session's link.
func (l *link) begin(s *session, gen int, conn transport.Conn) error {
	l.s, l.gen, l.conn = s, gen, conn
	l.over.Add(1)
	info := l.info()
	l.observe = s.opts.Observe(info.Provider, info.Model)
	if before := s.model.link(); before != nil && before.info().Model == info.Model {
		l.reports.Store(before.reports.Load())
	}
	if gen > 1 {
		l.prefix = "l" + strconv.Itoa(gen) + "."
	}
	l.ownRate = info.OutputRate
	return l.soundsAt(l.ownRate)
}

func (l *link) info() transport.Info { return l.conn.Info() }

// The caller must hold mu; the result is valid while it does.
func (l *link) current() bool { return l.s.model.link() == l && !l.replaced }

// The first link keeps the model's ids, except one that looks like another link's.
func (l *link) ours(id string) string {
	switch {
	case id == "":
		return id
	case l.prefix == "" && looksNamed(id):
		return "l1." + id
	}
	return l.prefix + id
}

// audioItem is ours for the item of a piece of audio, without an allocation per piece.
func (l *link) audioItem(id string) string {
	if l.spoken.theirs != id {
		l.spoken = named{id, l.ours(id)}
	}
	return l.spoken.ours
}

// name adds the link's prefix to the ids of an event. Audio uses audioItem.
func (l *link) name(ev transport.Event) transport.Event {
	switch e := ev.(type) {
	case transport.AudioDone:
		e.Item = l.ours(e.Item)
		return e
	case transport.ResponseStarted:
		e.ID = l.ours(e.ID)
		return e
	case transport.ResponseDone:
		e.ID = l.ours(e.ID)
		return e
	case transport.Transcript:
		e.Item = l.ours(e.Item)
		return e
	case transport.SpeechStarted:
		e.Item = l.ours(e.Item)
		return e
	case transport.SpeechStopped:
		e.Item = l.ours(e.Item)
		return e
	case transport.InputCommitted:
		e.Item = l.ours(e.Item)
		return e
	case transport.Truncated:
		e.Item = l.ours(e.Item)
		return e
	case transport.TranscriptFailed:
		e.Item = l.ours(e.Item)
		return e
	case transport.ToolCall:
		// The provider's own id stays: it identifies a call that a resumed conversation repeats.
		e.Call = l.ours(e.Call)
		return e
	case transport.ToolCancelled:
		calls := make([]string, len(e.Calls))
		for i, c := range e.Calls {
			calls[i] = l.ours(c)
		}
		return transport.ToolCancelled{Calls: calls}
	}
	return ev // it has no ids
}

// theirs reports false for a command about an item or a call of another link.
func (l *link) theirs(cmd transport.Command) (transport.Command, bool) {
	ok := true
	switch c := cmd.(type) {
	case transport.Truncate:
		c.Item, ok = l.own(c.Item)
		cmd = c
	case transport.ToolResult:
		c.Call, ok = l.own(c.Call)
		cmd = c
	}
	return cmd, ok
}

// own returns the model's id for the session's; ok is false if it belongs to another link.
func (l *link) own(id string) (theirs string, ok bool) {
	gen, rest := splitID(id)
	return rest, gen == l.gen
}

func splitID(id string) (gen int, theirs string) {
	head, rest, ok := strings.Cut(id, ".")
	if !ok || len(head) < 2 || len(head) > 10 || head[0] != 'l' {
		return 1, id
	}
	gen, err := strconv.Atoi(head[1:])
	if err != nil || gen < 1 {
		return 1, id
	}
	return gen, rest
}

func looksNamed(id string) bool {
	_, theirs := splitID(id)
	return len(theirs) < len(id)
}

func (m *modelSide) link() *link { return m.linked.Load() }

// currentHandover returns the handover; nil if the session stays. The caller must hold the session's mu.
func (m *modelSide) currentHandover() *handover { return m.handover }
