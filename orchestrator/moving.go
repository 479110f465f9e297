package orchestrator

import "time"

// Move asks the session to leave this process for another: at the first moment at which the move goes unnoticed, and at
// By in any case. Without a client the session leaves at once, unless a call runs. The newest Move counts. A session
// that is ending stays, and so does one whose model's connection cannot be replaced; see [Replaceable].
type Move struct{ By time.Time }

// Moving hands the session off. The connection to the model is closed as by SwitchLink; Handle is the provider's resume
// handle, or empty if the history must be replayed. If another process takes the session, it ends here; otherwise a new
// connection is opened and LinkBack or LinkFailed reports the result.
type Moving struct{ Handle string }

func (Move) input()    {}
func (Moving) action() {}

// move is the state of a Move.
type move struct {
	by time.Time // when the session leaves in any case; zero if it stays
}

// moves reports whether the session will leave this process.
func (s State) moves() bool { return !s.move.by.IsZero() }

// leaving reports whether the session was handed off and may be gone.
func (s State) leaving() bool { return s.down() && s.link.reason == LinkMoving }

// moveBy plans the move.
func (m *machine) moveBy(by time.Time) {
	if m.replaceable() {
		m.move.by = by
	}
}

// leaves reports whether the session should leave now.
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

// leave hands the session off.
func (m *machine) leave() {
	m.move = move{}
	if m.down() {
		m.do(Moving{})
		return
	}
	m.unlink(LinkMoving, Attempt{})
}
