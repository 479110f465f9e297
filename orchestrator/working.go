package orchestrator

import (
	"time"

	"voicegw/transport"
)

// workPatience is how long a model counts as at work after it has last said so. A provider that never
// withdraws that delays a turn's failure, a planned replacement and the idle limit by no more than this.
const workPatience = 2 * time.Minute

// work is until when the model is or was at work although it sends no answer: in the future while it is at
// work, in the past once it has said that it is not. It is immutable.
type work struct{ until time.Time }

// workedUntil returns that time; zero if the model of this connection has never been at work. Every wait for
// the model begins then at the earliest.
func (s State) workedUntil() (at time.Time) {
	if s.work != nil {
		return s.work.until
	}
	return at
}

// atWork reports whether the model is at work although it sends no answer.
func (m *machine) atWork() bool { return m.at.Before(m.workedUntil()) }

// afterWork returns the later one of at and the end of the model's work; zero if at is.
func (s State) afterWork(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return latest(at, s.workedUntil())
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// interaction takes the model's report of whether it is at work. An answer that was silent because the model
// was at work is over with that.
func (m *machine) interaction(ev transport.Interaction) {
	was := m.atWork()
	switch {
	case ev.InProgress:
		m.work = &work{m.at.Add(workPatience)}
	case was:
		m.work = &work{m.at}
	default:
		return
	}
	if l := &m.link; l.proof == asked {
		l.proofBy = m.workedUntil().Add(proofPatience)
	}
	if t := m.turn; t != nil && t.nudge == nudgeSoon {
		t.nudgeAt = latest(t.nudgeAt, m.at.Add(nudgeGrace))
	}
	if t := m.turn; !ev.InProgress && t != nil && t.stage == answering && t.response != "" && t.response == m.response.id && !m.response.underWay() {
		t.stage = done
		m.missesSpeech(t)
	}
}
