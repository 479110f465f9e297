package orchestrator

import "time"

// Lapse sets when the session must end because the client's credentials expire. It replaces an earlier Lapse.
type Lapse struct {
	// At is the expiry; zero means never.
	At time.Time
}

func (Lapse) input() {}

// lapse is the expiry of the client's credentials. It is immutable.
type lapse struct {
	at     time.Time
	warned bool // the client knows
}

// lapseWarning is how long before the expiry the client is warned.
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

// watchLapse warns the client before its credentials expire, and then ends the session.
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

// lapseDue calls sooner with the times at which watchLapse must run.
func (s State) lapseDue(sooner func(time.Time)) {
	if s.lapse == nil {
		return
	}
	if !s.lapse.warned {
		sooner(s.lapse.at.Add(-lapseWarning))
	}
	sooner(s.lapse.at)
}
