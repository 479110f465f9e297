package orchestrator

import "time"

// Lapse says when the session must end because the client's credentials do. It replaces what an
// earlier one has said.
type Lapse struct {
	// At is when they end; zero means that the session does not end with them.
	At time.Time
}

func (Lapse) input() {}

// lapse is what the State keeps about the end of the client's credentials. It is immutable.
type lapse struct {
	at     time.Time
	warned bool // the client knows of it
}

// lapseWarning is how long before it the client is told.
const lapseWarning = time.Minute

func (m *machine) lapses(in Lapse) {
	switch {
	case in.At.IsZero():
		m.lapse = nil
	case m.lapse == nil || !in.At.Equal(m.lapse.at):
		m.lapse = &lapse{at: in.At}
	}
	m.watchLapse()
}

// watchLapse ends the session with the client's credentials, and announces that.
func (m *machine) watchLapse() {
	if m.lapse == nil || m.phase == PhaseEnded {
		return
	}
	left := m.lapse.at.Sub(m.at)
	if left <= 0 {
		m.breakOff(EndLapsed)
		return
	}
	if left <= lapseWarning && !m.lapse.warned {
		m.lapse = &lapse{at: m.lapse.at, warned: true}
		m.do(Ending{Reason: EndLapsed, After: left})
	}
}

// lapseDue calls sooner with the times at which watchLapse has something to do.
func (s State) lapseDue(sooner func(time.Time)) {
	if s.lapse == nil {
		return
	}
	if !s.lapse.warned {
		sooner(s.lapse.at.Add(-lapseWarning))
	}
	sooner(s.lapse.at)
}
