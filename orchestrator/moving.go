package orchestrator

import "time"

// Move asks the session to leave this process, so that another one can go on with it: at the first
// moment at which nobody would notice, and at By in any case. A session whose client is away leaves
// at once, unless a call runs. The newest Move counts. A session that a tool is ending stays, and so
// does one with a model whose connection cannot be replaced; see [Replaceable].
type Move struct{ By time.Time }

// Moving gives the session up. The connection to the model is given up as by SwitchLink, with the
// provider's Handle from which the conversation can be resumed; an empty Handle means that the
// provider must be told the conversation again. Either the session ends here, or nobody could be
// given it: then another connection is opened as after SwitchLink, and LinkBack or LinkFailed reports
// the result.
type Moving struct{ Handle string }

func (Move) input()    {}
func (Moving) action() {}

// move is what the State keeps about a Move.
type move struct {
	by time.Time // when the session leaves in any case; zero if it stays
}

// moves reports whether the session will leave this process.
func (s State) moves() bool { return !s.move.by.IsZero() }

// leaving reports whether the session was given up and may have left.
func (s State) leaving() bool { return s.down() && s.link.reason == LinkMoving }

// moveBy plans the session's leave.
func (m *machine) moveBy(by time.Time) {
	if m.replaceable() {
		m.move.by = by
	}
}

// leaves reports whether this is the moment to leave.
func (m *machine) leaves() bool {
	switch {
	case !m.moves():
		return false
	case !m.at.Before(m.move.by):
		return true
	case m.away():
		return m.calls.UnderWay() == 0 && !m.atWork()
	case m.down() || !m.quiet():
		m.link.quietAt = time.Time{}
		return false
	}
	return !m.awaitsHandle()
}

// leave gives the session up.
func (m *machine) leave() {
	m.move = move{}
	if m.down() {
		m.do(Moving{})
		return
	}
	m.unlink(LinkMoving, Attempt{})
}
