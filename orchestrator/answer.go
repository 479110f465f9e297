package orchestrator

import (
	"slices"
	"strings"
	"time"

	"voicegw/transport"
)

func (in AudioBegan) take(m *machine) {
	m.resulted(time.Time{})
	if !m.line.meet(in.Item) || m.response.held || m.lastWordSaid() {
		return
	}
	if m.turn == nil || m.turn.stage == done {
		m.openTurnMidway()
	}
	if m.turn.modelAt.IsZero() {
		m.turn.modelAt = m.at
	}
	m.turn.spoke = true
	m.answers()
	if m.suppressed.audio && (!m.ending() || m.farewell.item != "") {
		return
	}
	if !m.line.begin(in.Item, m.turn.number, m.at) {
		m.response.held = true // too many items wait already: the rest of the response is dropped
		m.do(Failed{Turn: m.turn.number, Failure: FailureProvider})
		return
	}
	if m.ending() && m.farewell.item == "" && !m.preamble() {
		m.farewell.item = in.Item
	}
	m.user.remember(in.Item, m.turn.number, m.at)
	m.do(OpenItem{Item: in.Item, Turn: m.turn.number})
	m.playsExact(in.Item)
}

// preamble reports whether the current response cannot contain the farewell, because it began before the tool's result.
func (m *machine) preamble() bool {
	return m.caps.RespondNeeded && m.response.underWay && m.response.id == m.farewell.response
}

func (in AudioEnded) take(m *machine) {
	m.link.changed()
	if it, ok := m.line.end(in.Item, in.AudioMS); ok {
		m.do(EndItem{Item: it.id, Turn: it.turn, AudioMS: it.audioMS})
	}
}

func (in AudioSent) take(m *machine) {
	it, ok := m.line.send(in)
	if ok && !it.exact && m.turn != nil && m.turn.number == it.turn && m.turn.clientAt.IsZero() {
		m.turn.clientAt = m.at
		m.turn.late = m.turn.late || m.absence.back.After(m.turn.modelAt)
	}
}

func (in Played) take(m *machine) {
	if m.line.report(in, m.at) {
		return
	}
	i := slices.IndexFunc(m.cuts, func(c cut) bool { return c.item == in.Item })
	if i < 0 {
		return
	}
	m.line.reports = true
	c := &m.cuts[i]
	c.heardMS = min(max(in.MS, c.leastMS), c.sentMS)
	c.leastMS = c.heardMS
	if in.Done {
		m.settleCut(*c)
		m.cuts = slices.Delete(m.cuts, i, i+1)
	}
}

func (m *machine) transcript(ev transport.Transcript) {
	if m.unwanted(ev) {
		return
	}
	turn := m.turns.last
	switch {
	case ev.Role == transport.RoleUser:
		m.lastActive, m.user.acted = m.at, true
		turn = m.userTurn()
		m.asked()
	case m.ending() && m.farewell.item == "" && m.farewell.written == "" && !m.user.knows(ev.Item) && !m.preamble():
		m.farewell.written = ev.Item
	}
	u := m.user.remember(ev.Item, turn, m.utteranceStart(ev.Role))
	if ev.Role == transport.RoleUser && strings.TrimSpace(ev.Text) != "" {
		m.user.worded = max(m.user.worded, u.turn)
		m.user.wording = m.user.wording.with(u.turn, ev.Item, ev.Text)
		if ev.Final {
			m.user.words(ev.Item, u.turn)
		}
		if !u.since.Before(m.user.spokenAt) { // the words are of the latest speech
			m.user.certain = true
			m.talkedOver()
		}
	}
	told := Transcript{Turn: u.turn, ID: ev.Item, Role: ev.Role, Text: ev.Text, Final: ev.Final, StartedAt: u.since}
	m.do(told)
	m.noteWords(told)
	switch {
	case ev.Role != transport.RoleAssistant:
	case !ev.Final:
		m.link.draft = told
	case m.link.draft.ID == ev.Item:
		m.link.draft = Transcript{}
	}
	if t := m.turn; t != nil && ev.Role == transport.RoleAssistant && u.turn == t.number && !u.since.Before(t.owedFrom) &&
		strings.TrimSpace(ev.Text) != "" {
		// A model that answers in text alone has answered. Late words that it said before it called
		// a tool do not answer the tool's result.
		t.spoke = true
		m.answers()
	}
}

func (m *machine) unwanted(ev transport.Transcript) bool {
	// The farewell may be text only, or its text may come before its audio.
	farewell := m.ending() && ev.Role == transport.RoleAssistant &&
		(m.farewell.item == "" && m.farewell.written == "" || m.farewell.item == ev.Item || m.farewell.written == ev.Item)
	switch {
	case m.suppressed.transcript && !farewell, m.sayings.says(ev.Item):
		return true
	case ev.Role == transport.RoleUser || m.user.knows(ev.Item):
		return false
	case m.response.held, m.lastWordSaid():
		return true
	default:
		return m.suppressed.audio && m.ending() && !farewell
	}
}

func (m *machine) utteranceStart(role transport.Role) time.Time {
	if role == transport.RoleUser && !m.user.since.IsZero() {
		return m.user.since
	}
	return m.at
}

func (m *machine) responseStarted(ev transport.ResponseStarted) {
	m.link.changed()
	if !m.proves() {
		return
	}
	m.response.begin(ev)
	if m.stop.pending && (!m.user.spokenAt.After(m.stop.at) || m.user.voice == pressing || m.user.speaks() && m.caps.SpeechEvents) {
		// The user pressed stop, or only tapped the button for talking, before this answer began. It cannot answer
		// anything that they have said since.
		m.stop.pending = false
		m.response.held = true
		if m.user.voice != pressing { // the press has stopped it
			m.cancel()
		}
		return
	}
	if m.lastWordSaid() {
		m.response.held = true // the farewell was the last answer
		m.cancel()
		return
	}
	if t := m.turn; t != nil && t.cut != uncut && m.user.speaks() && m.caps.SpeechEvents {
		m.response.held = true // requested before the user spoke: it belongs to the answer that they stopped
		m.cancel()
		return
	}
	if t := m.turn; t != nil && m.answersBeside(t) {
		t.stage = done
	}
	if m.turn == nil || m.turn.stage == done || m.turn.cut != uncut {
		m.openModelTurn()
	}
	t := m.turn
	t.response, t.calls, t.stage = ev.ID, 0, answering
	if t.nudge == nudgeSoon {
		t.nudge = nudgeLater
	}
}

// answersBeside reports whether the new response answers words said while a background call of an answered turn ran.
func (m *machine) answersBeside(t *turn) bool {
	return t.stage == owing && !t.modelAt.IsZero() && m.user.acted && !m.caps.RespondNeeded
}

func (m *machine) responseDone(ev transport.ResponseDone) {
	if ev.ID == m.response.id {
		m.response.underWay, m.response.held = false, false
	}
	t := m.turn
	if t == nil || t.response != ev.ID {
		return // it belongs to a turn that is over
	}
	switch {
	case m.failed(t, ev):
		return
	case ev.Status == transport.ResponseInterrupted && m.user.voice == muted:
		t.cut = uncut // the user hears the whole farewell that has arrived
	case ev.Status == transport.ResponseInterrupted && (t.cut != uncut || m.stopped(t)):
		if t.cut == uncut {
			t.cut = cutOff
		}
	case ev.Status == transport.ResponseInterrupted:
		t.waitOn(m.at)
		return
	case t.calls > 0 && m.caps.RespondNeeded || m.calls.Owed(t.number):
		// The model waits for results, or must be asked for its answer.
		t.stage = owing
		m.settleCalls(t, m.calls.Owed(t.number))
		return
	}
	if t.stopSent && ev.Status == transport.ResponseCompleted && !m.caps.RespondNeeded {
		// The response was already over when the stop arrived. A model that answers without being
		// asked may take the stop for a user's turn, and answer that.
		m.stop.pending, m.stop.at = true, t.cutAt
	}
	t.stage = done
	m.missesSpeech(t)
}

func (m *machine) failed(t *turn, ev transport.ResponseDone) bool {
	switch {
	case ev.Status == transport.ResponseFailed:
		m.answerFailed(t, ev.Err)
		return true
	case ev.Status == transport.ResponseIncomplete && ev.Err != nil && ev.Err.Kind == transport.KindFiltered && !t.spoke && t.calls == 0:
		m.failTurn(failedBy(t.number, Loss{Kind: transport.KindFiltered}))
		return true
	}
	return false
}

// answerFailed retries a failed answer, fails over, or fails the turn, within the budget of attempts.
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
		m.failTurn(failedBy(t.number, l))
		return
	}
	since := m.owedSince()
	if since.IsZero() {
		since = m.at
	}
	switch try := m.link.tries.Unanswered(m.at, l); {
	case try.Over, !try.Other && m.at.Add(try.After).Sub(since) >= m.policy.NoAnswerAfter:
		m.failTurn(failedBy(t.number, l))
	case try.Other:
		m.link.kind = l.Kind
		m.unlink(LinkFailing, try)
	default:
		t.stage, t.calls, t.retryAt = answering, 0, m.at.Add(try.After)
	}
}
