package orchestrator

import (
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// LinkFailing means that the model's answers fail, and the other provider takes over.
const LinkFailing LinkReason = "failing"

// failed handles a failed answer to the open turn. It reports whether the answer failed.
func (m *machine) failed(t *turn, ev transport.ResponseDone) bool {
	switch {
	case ev.Status == transport.ResponseFailed:
		m.answerFailed(t, ev.Err)
		return true
	case ev.Status == transport.ResponseIncomplete && ev.Err != nil && ev.Err.Kind == transport.KindFiltered && !t.spoke && t.calls == 0:
		m.failTurnBy(Loss{Kind: transport.KindFiltered})
		return true
	}
	return false
}

// answerFailed retries a failed answer, or fails over, within the budget of attempts; otherwise the turn fails with an
// error that names the cause.
func (m *machine) answerFailed(t *turn, err *transport.Error) {
	l := Loss{Kind: transport.KindServer, Other: m.policy.Failover && m.replaceable()}
	if err != nil {
		l.Kind, l.After = err.Kind, err.RetryAfter
	}
	if m.calls.Owed(t.number) {
		t.stage = owing // the answer is asked for once the results are there
		m.settleCalls(t, true)
		return
	}
	if t.cut != uncut || m.ending() {
		m.failTurnBy(l)
		return
	}
	since := m.owedSince()
	if since.IsZero() {
		since = m.at
	}
	switch try := m.link.tries.Unanswered(m.at, l); {
	case try.Over, !try.Other && m.at.Add(try.After).Sub(since) >= m.policy.NoAnswerAfter:
		m.failTurnBy(l)
	case try.Other:
		m.link.kind = l.Kind
		m.unlink(LinkFailing, try)
	default:
		t.stage, t.calls, t.retryAt = answering, 0, m.at.Add(try.After)
	}
}

// failTurnBy ends the open turn with the error of the cause.
func (m *machine) failTurnBy(l Loss) {
	told := failedBy(m.turn.number, l)
	m.failTurn(told.Failure, told.Retryable)
	for i, a := range m.actions {
		if f, ok := a.(Failed); ok && f.Turn == told.Turn && f.Failure == told.Failure {
			m.actions[i] = told
		}
	}
}

// failedBy returns the client's error for a failure.
func failedBy(turn int, l Loss) Failed {
	row := l.Kind.Failure()
	return Failed{Turn: turn, Failure: Failure(row.Code), Retryable: row.Later, Kind: l.Kind, After: l.After}
}

// retryDue returns when a failed answer is retried; zero if none is. A user who speaks brings another answer instead.
func (s State) retryDue() time.Time {
	t := s.turn
	if t == nil || t.cut != uncut || t.stage != answering || s.down() || s.away() || s.user.speaks() || s.user.spokenAt.After(t.startedAt) || s.response.underWay() {
		return time.Time{}
	}
	return t.retryAt
}

// mayNudge reports whether the model may be asked again for the answer to the open turn: not while the user speaks or a
// retry is pending.
func (s State) mayNudge() bool {
	return s.turn.nudge != nudged && !s.user.speaks() && s.turn.retryAt.IsZero()
}

// watchFailed retries a failed answer when it is due.
func (m *machine) watchFailed() {
	at := m.retryDue()
	if at.IsZero() || m.at.Before(at) {
		return
	}
	t := m.turn
	t.retryAt = time.Time{}
	if t.spoke {
		t.spoke, t.owedFrom = false, m.at
		m.sendNotice(prompts.GoOnAfterBreak)
		return
	}
	m.ask(t, LinkResumed)
}
