package orchestrator

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/transport"
)

// minSpeech is how long the gateway's own ear must have heard speech before an
// answer is owed for it: a cough is none.
const minSpeech = 400 * time.Millisecond

// quietTime is how long after the user's speech a notice still waits: the turn that the
// speech opens comes first.
const quietTime = 1500 * time.Millisecond

func (m *machine) speechStarted(in UserSpeechStarted) {
	if m.muted {
		return
	}
	m.speaking, m.userActed, m.unanswered = true, true, false
	m.lastActive, m.spokenAt = m.at, in.At
	m.speechItem, m.speechSince = in.Item, in.At
	m.remember(in.Item, m.nextTurn(), in.At)
	m.do(SpeechStarted{Turn: m.nextTurn(), AudioMS: in.AudioMS})
	if !m.caps.InterruptNotice {
		// This model stops by itself when it hears the user, and says no more.
		m.interrupt(FlushUserSpeech)
	}
}

func (m *machine) speechStopped(in UserSpeechStopped) {
	if m.muted {
		return
	}
	m.speaking, m.userActed = false, true
	m.lastActive, m.quietAt = m.at, m.at.Add(quietTime)
	m.speechItem, m.speechSince, m.speechKnown = in.Item, in.EndAt, m.at
	m.do(SpeechStopped{Turn: m.nextTurn(), AudioMS: in.AudioMS})
	t := m.turn
	switch {
	case t != nil && in.EndAt.Before(t.startedAt):
		// The model was quicker than the ear: its answer has told of the end.
		t.inputEnd, t.unheard = in.EndAt, false
		return
	case t != nil && !t.modelDone && t.modelAt.IsZero():
		t.inputEnd, t.knownAt = in.EndAt, m.at
		return
	case in.EndAt.Before(m.turnBegan):
		return // the turn that is over has answered it
	}
	if !m.caps.SpeechEvents && !m.underWay() && !m.Audible(m.at) &&
		in.SpeechMS >= minSpeech.Milliseconds() {
		m.openUserTurn(in.EndAt)
		return
	}
	m.unanswered = true
}

// userActivity is push-to-talk. Pressing is an interruption by intent: it does
// not wait for the model to notice.
func (m *machine) userActivity(in UserActivity) {
	if m.muted {
		return
	}
	m.lastActive, m.userActed = m.at, true
	if in.Active {
		m.speaking, m.spokenAt = true, m.at
		m.speechItem, m.speechSince = "", m.at
		m.do(SpeechStarted{Turn: m.nextTurn(), AudioMS: in.AudioMS})
		m.interrupt(FlushUserSpeech)
		m.send(transport.ActivityStart{})
		return
	}
	if !m.speaking {
		return
	}
	m.speaking, m.quietAt = false, m.at.Add(quietTime)
	m.do(SpeechStopped{Turn: m.nextTurn(), AudioMS: in.AudioMS})
	m.send(transport.ActivityEnd{})
	m.openUserTurn(m.at)
}

// userInterrupt is the stop button.
func (m *machine) userInterrupt() {
	if m.ending() {
		m.end(EndTool)
		return
	}
	m.lastActive, m.userActed = m.at, true
	m.interrupt(FlushUserStop)
	if m.turn != nil && !m.underWay() {
		// Nothing is under way that could end it.
		m.stopped, m.stoppedAt = !m.turn.modelDone, m.at
		m.turn.modelDone, m.turn.interrupted = true, true
	}
}

// cancel asks the model to stop, where it can.
func (m *machine) cancel() {
	if m.caps.Cancel {
		m.send(transport.Interrupt{})
	}
}

// interrupt stops the answer: what the client has not played of it is dropped,
// and nothing more of this response reaches it.
func (m *machine) interrupt(reason FlushReason) {
	if m.muted {
		return // the farewell is heard to its end
	}
	m.settleTurn()
	m.stopCalls()
	for i, it := range m.items {
		m.do(FlushItem{Item: it.id, Turn: it.turn, Reason: reason})
		if m.caps.Truncate {
			m.truncations = append(m.truncations, truncation{item: it.id, heardMS: m.heard(i, m.at), deadline: m.at.Add(m.policy.ReportWait)})
		}
	}
	if t := m.turn; t != nil && slices.ContainsFunc(m.items, func(it item) bool { return it.turn == t.number }) {
		t.interrupt(m.at)
	}
	m.items = nil
	if !m.responding {
		return
	}
	m.held = true
	if t := m.turn; t != nil && t.response == m.responseID {
		// The notice may be about a response that an earlier turn has left behind.
		t.interrupt(m.at)
	}
	if reason == FlushUserStop {
		m.cancel()
		if m.underWay() {
			m.turn.stopSent = m.caps.Cancel
		}
	}
}

func (m *machine) audioBegan(in AudioBegan) {
	if m.held {
		return
	}
	if m.turn == nil || m.turn.modelDone {
		m.openTurnMidway()
	}
	if m.turn.modelAt.IsZero() {
		m.turn.modelAt = m.at
	}
	m.turn.spoke = true
	if m.suppressed.audio && !m.ending() {
		return
	}
	m.items = append(m.items, item{id: in.Item, turn: m.turn.number, openedAt: m.at})
	if len(m.items) > maxItems {
		m.items = slices.Delete(m.items, 0, 1)
	}
	m.remember(in.Item, m.turn.number, m.at)
	m.do(OpenItem{Item: in.Item, Turn: m.turn.number})
}

func (m *machine) audioEnded(in AudioEnded) {
	if it := m.item(in.Item); it != nil {
		it.ended, it.audioMS = true, in.AudioMS
		m.do(EndItem{Item: it.id, Turn: it.turn, AudioMS: it.audioMS})
	}
}

func (m *machine) audioSent(in AudioSent) {
	it := m.item(in.Item)
	if it == nil {
		return
	}
	it.sentAt = m.at
	if m.turn != nil && m.turn.number == it.turn && m.turn.clientAt.IsZero() {
		m.turn.clientAt = m.at
	}
}

func (m *machine) played(in Played) {
	if it := m.item(in.Item); it != nil {
		it.playedMS, it.reported = in.MS, true
		if in.Done && it.ended {
			m.items = slices.DeleteFunc(m.items, func(it item) bool { return it.id == in.Item })
		}
		return
	}
	i := slices.IndexFunc(m.truncations, func(t truncation) bool { return t.item == in.Item })
	if i < 0 {
		return
	}
	m.truncations[i].heardMS = in.MS
	if in.Done {
		m.send(transport.Truncate{Item: in.Item, AudioMS: in.MS})
		m.truncations = slices.Delete(m.truncations, i, i+1)
	}
}

func (m *machine) item(id string) *item {
	for i := range m.items {
		if m.items[i].id == id {
			return &m.items[i]
		}
	}
	return nil
}

func (m *machine) transcript(ev transport.Transcript) {
	if ev.Role == transport.RoleAssistant && m.held && !m.known(ev.Item) || m.suppressed.transcript && !m.ending() {
		return
	}
	turn := m.lastTurn
	if ev.Role == transport.RoleUser {
		m.lastActive, m.userActed = m.at, true
		turn = m.userTurn()
	}
	u := m.remember(ev.Item, turn, m.utteranceStart(ev.Role))
	m.do(Transcript{Turn: u.turn, ID: ev.Item, Role: ev.Role, Text: ev.Text, Final: ev.Final, StartedAt: u.since})
	if t := m.turn; t != nil && ev.Role == transport.RoleAssistant && u.turn == t.number && !u.since.Before(t.owedFrom) && strings.TrimSpace(ev.Text) != "" {
		// A model that answers in text alone has answered. The late words of what it said
		// before it called a tool are no answer to the result.
		t.spoke = true
	}
}

// userTurn is the turn of an utterance whose transcript comes before its item was
// heard of: the open one unless the user has spoken again since.
func (m *machine) userTurn() int {
	if m.turn != nil && !m.speaking && !m.speechSince.After(m.turn.startedAt) {
		return m.turn.number
	}
	return m.nextTurn()
}

// utteranceStart guesses when an utterance began whose transcript comes first.
func (m *machine) utteranceStart(role transport.Role) time.Time {
	if role == transport.RoleUser && !m.speechSince.IsZero() {
		return m.speechSince
	}
	return m.at
}

// remember returns where an utterance began, and notes it on first sight.
func (m *machine) remember(item string, turn int, since time.Time) utterance {
	for _, u := range m.utterances {
		if u.item == item && item != "" {
			return u
		}
	}
	u := utterance{item: item, turn: turn, since: since}
	if item != "" {
		m.utterances = append(m.utterances, u)
		if len(m.utterances) > maxUtterances {
			m.utterances = slices.Delete(m.utterances, 0, 1)
		}
	}
	return u
}

func (m *machine) known(item string) bool {
	return slices.ContainsFunc(m.utterances, func(u utterance) bool { return u.item == item })
}

// nextTurn is the turn that what the user says now belongs to: the open one while
// nothing has answered it, or the one to come.
func (m *machine) nextTurn() int {
	if t := m.turn; t != nil && t.modelAt.IsZero() && !t.modelDone && !t.interrupted {
		return t.number
	}
	return m.lastTurn + 1
}

func (m *machine) textID(id string) string {
	if id != "" {
		return id
	}
	return "text_" + strconv.Itoa(m.lastTurn)
}
