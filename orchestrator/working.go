package orchestrator

import (
	"time"

	"voicegw/transport"
)

// workPatience is how long a model counts as working after its last report. A provider that never reports the end
// delays timeouts by no more than this.
const workPatience = 2 * time.Minute

// work is until when the model works, or worked, without sending an answer: in the future while it works, in the past
// afterwards. It is immutable.
type work struct{ until time.Time }

// workedUntil returns that time; zero if the current connection's model never worked. Every wait for the model begins
// then at the earliest.
func (s State) workedUntil() (at time.Time) {
	if s.work != nil {
		return s.work.until
	}
	return at
}

// atWork reports whether the model works without sending an answer.
func (m *machine) atWork() bool { return m.at.Before(m.workedUntil()) }

// afterWork returns the later of at and the end of the model's work; zero if at is zero.
func (s State) afterWork(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return latest(at, s.workedUntil())
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// interaction handles the model's report of whether it is working. A silent answer ends with the work.
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
