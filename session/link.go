package session

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"voicegw/audio"
	"voicegw/transport"
)

// modelSide is what a session has for its model, whichever connection it uses.
type modelSide struct {
	linked   atomic.Pointer[link] // stored under mu, and while nothing sends to the model
	lookback *lookback            // fixed; nil if the session ends with its first connection
	// redial opens other connections for the present agent; nil if the session ends with its first one. It
	// is stored under mu.
	redial atomic.Pointer[redialer]
	parts  struct { // what look and redial point to at first
		look   lookback
		redial redialer
	}

	// Guarded by mu.
	relink   *relink   // to another link; nil while the session keeps its link
	handover *handover // nil unless the session is being given up
}

// link is a session's connection to a model. A session has at most one at a time, which its field
// linked names; each has a higher gen than the one before. What an older link still says is dropped
// under mu, so that no connection speaks for the one after it.
//
// An adapter's ids are unique within one connection only. The link makes those of the session: it
// is the one place that puts prefix before each id that comes from the model, and removes it from
// each that goes there.
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
	replaced bool  // it was given up, and is no longer the session's
	failed   error // the first error of the connection

	// over is done, and isOver set, when hear has seen the connection's end.
	over   sync.WaitGroup
	isOver atomic.Bool

	skipped sync.Once // tells what its messages meant

	reports atomic.Bool // the model has reported what it uses, on this link or an earlier one

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

// named is an id as the model gave it and as the session knows it.
type named struct{ theirs, ours string }

// begin must be called first. Then l is not yet the session's link.
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

// info describes the connection.
func (l *link) info() transport.Info { return l.conn.Info() }

// current reports whether l is the session's link and has not been given up. The caller must hold
// mu, and the answer holds for as long.
func (l *link) current() bool { return l.s.model.link() == l && !l.replaced }

// ours returns the session's name for an id of the model; an empty id stays empty. The first link
// keeps the model's ids, except one that looks like another link's.
func (l *link) ours(id string) string {
	switch {
	case id == "":
		return id
	case l.prefix == "" && looksNamed(id):
		return "l1." + id
	}
	return l.prefix + id
}

// audioItem is ours for the item of a piece of audio, without an allocation for each piece.
func (l *link) audioItem(id string) string {
	if l.spoken.theirs != id {
		l.spoken = named{id, l.ours(id)}
	}
	return l.spoken.ours
}

// name puts the link's prefix before the ids of an event. Audio has audioItem.
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
		// The provider's own id stays: it recognises a call that a resumed conversation repeats.
		e.Call = l.ours(e.Call)
		return e
	case transport.ToolCancelled:
		calls := make([]string, len(e.Calls))
		for i, c := range e.Calls {
			calls[i] = l.ours(c)
		}
		return transport.ToolCancelled{Calls: calls}
	}
	return ev // it names nothing
}

// theirs removes the link's prefix from a command. It reports false for a command about an item or
// a call of another link, which this one does not know.
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

// own returns the model's id for an id of the session; ok is false if it belongs to another link.
func (l *link) own(id string) (theirs string, ok bool) {
	gen, rest := splitID(id)
	return rest, gen == l.gen
}

// splitID returns the link that an id of the session belongs to, and the model's id.
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

// looksNamed reports whether an id of a model has the form of one that a link has named.
func looksNamed(id string) bool {
	_, theirs := splitID(id)
	return len(theirs) < len(id)
}

// link returns the session's link.
func (m *modelSide) link() *link { return m.linked.Load() }

// current returns the session's giving; nil if the session stays. The caller must hold the session's mu.
func (m *modelSide) currentHandover() *handover { return m.handover }
