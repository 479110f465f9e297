package orchestrator

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/transport"
)

// minSpeech is how long the gateway's detector must hear speech before an answer is owed. A cough is shorter.
const minSpeech = 400 * time.Millisecond

// quietTime is how long a notice waits after the user's speech, because the turn of that speech comes first.
const quietTime = 1500 * time.Millisecond

// speech handles the inputs about the user's speech.
func (m *machine) speech(in Input) {
	switch in := in.(type) {
	case UserSpeechStarted:
		m.speechStarted(in)
	case UserSpeechStopped:
		m.speechStopped(in)
	case UserHeard:
		m.user.earAt, m.user.earMS = m.at, in.AudioMS
		if in.Sustained && m.user.voice == speaking {
			m.user.certain = true
			m.talkedOver()
		}
	case UserQuiet:
		m.user.quiet = in.EndAt
		if t := m.turn; t != nil && t.unheard && m.heardEnd() && in.EndAt.Before(t.startedAt) {
			// The model has answered before it reported the end of the speech.
			t.inputEnd, t.unheard = in.EndAt, false
		}
	}
}

// heardEnd reports whether the gateway's detector has heard an end of the latest speech.
func (m *machine) heardEnd() bool {
	return !m.user.quiet.Before(m.user.spokenAt) && !m.user.quiet.IsZero()
}

func (m *machine) speechStarted(in UserSpeechStarted) {
	if m.user.voice == muted {
		return
	}
	m.changed()
	m.user.voice, m.user.acted, m.user.unanswered, m.user.certain = speaking, true, false, false
	m.lastActive, m.user.spokenAt = m.at, in.At
	m.user.earAt, m.user.earMS = m.at, in.AudioMS
	m.user.item, m.user.since = in.Item, in.At
	m.user.settled.begins(in.AudioMS)
	m.remember(in.Item, m.nextTurn(), in.At)
	m.do(SpeechStarted{Turn: m.nextTurn(), AudioMS: in.AudioMS})
	if !m.caps.InterruptNotice {
		// This model stops automatically when it hears the user, and sends no notice of it.
		m.interrupt(FlushUserSpeech)
	}
}

func (m *machine) speechStopped(in UserSpeechStopped) {
	if m.user.voice == muted {
		return
	}
	m.speechOver(in.EndAt, in.Unsure)
	m.user.settled.stops(in.AudioMS)
	m.user.item, m.user.acted = in.Item, true
	m.lastActive, m.user.quietAt = m.at, m.at.Add(quietTime)
	t, end, unsure := m.turn, m.user.since, m.user.unsure
	told := SpeechStopped{Turn: m.nextTurn(), AudioMS: in.AudioMS, EndMS: in.EndMS}
	if in.Unsure {
		told.EndMS = -1
	}
	answered := t != nil && end.Before(t.startedAt)
	if answered && (t.unheard || t.inputEnd.Equal(end)) {
		told.Turn = t.number
	}
	m.do(told)
	switch {
	case answered:
		// The model was quicker than the detector: its answer has shown that the speech is over.
		if !unsure {
			t.inputEnd, t.unheard = end, false
		}
		return
	case t != nil && t.stage != done && t.cut == uncut && t.modelAt.IsZero():
		t.inputEnd, t.knownAt, t.unheard = end, m.at, unsure
		return
	case end.Before(m.turns.began):
		return // the previous turn has already answered it
	}
	if !m.caps.SpeechEvents && (!m.underWay() || m.response.held()) && !m.Audible(m.at) &&
		in.SpeechMS >= minSpeech.Milliseconds() {
		m.openSpokenTurn()
		return
	}
	m.user.unanswered = true
}

// speechOver records the end of the user's speech, at endAt, which the gateway learns now. Every way in which speech
// ends comes here, because a turn's latency uses both times. unsure means that the last sound came some time before
// endAt.
func (m *machine) speechOver(endAt time.Time, unsure bool) {
	if unsure && m.heardEnd() {
		endAt, unsure = m.user.quiet, false
	}
	m.user.voice, m.user.since, m.user.known, m.user.unsure = silent, endAt, m.at, unsure
	if l := &m.link; l.proof == asked { // the model has time to prove itself from now on
		l.proofBy = m.at.Add(proofPatience)
	}
}

// speechLostAt returns when the user's speech counts as over without a report; zero if the user is not speaking.
func (s State) speechLostAt() time.Time {
	if s.user.voice != speaking {
		return time.Time{}
	}
	return s.user.earAt.Add(s.policy.SpeechSilence)
}

// watchSpeech ends speech that the gateway has not heard for long, because the model's report may be lost. Without an
// open turn it also reports to the user that no answer comes.
func (m *machine) watchSpeech() {
	if at := m.speechLostAt(); at.IsZero() || m.at.Before(at) {
		return
	}
	m.speechOver(m.user.earAt, true)
	m.link.midway = false // it is given up
	m.lastActive, m.user.quietAt = m.at, m.at
	m.do(SpeechStopped{Turn: m.nextTurn(), AudioMS: m.user.earMS, EndMS: -1})
	m.user.settled.stops(m.user.earMS)
	if m.turn == nil {
		m.answers()
		m.do(Failed{Turn: m.nextTurn(), Failure: FailureNoAnswer, Retryable: true})
	}
}

// userActivity handles push-to-talk. Pressing the button interrupts at once.
func (m *machine) userActivity(in UserActivity) {
	if m.user.voice == muted {
		return
	}
	m.lastActive, m.user.acted = m.at, true
	if in.Active && m.user.voice == pressing {
		return // the client was not sure that the press had arrived
	}
	if in.Active {
		m.user.voice, m.user.spokenAt, m.user.certain = pressing, m.at, false
		m.user.item, m.user.since = "", m.at
		m.user.earAt, m.user.earMS = m.at, in.AudioMS
		m.user.settled.begins(in.AudioMS)
		m.do(SpeechStarted{Turn: m.nextTurn(), AudioMS: in.AudioMS})
		m.interrupt(FlushUserSpeech)
		m.send(transport.ActivityStart{})
		return
	}
	if m.user.speaks() {
		m.released(in.AudioMS, in.AudioMS-m.user.earMS < minPress.Milliseconds())
	}
}

// minPress is the least audio that a press must bring. A tap has less, and no word.
const minPress = 200 * time.Millisecond

// released handles the end of a press at audioMS on the client's audio clock. A tap begins no turn, and an answer that
// it has not stopped is asked for again.
func (m *machine) released(audioMS int64, tap bool) {
	m.speechOver(m.at, false)
	m.user.settled.stops(audioMS)
	m.user.quietAt = m.at.Add(quietTime)
	m.do(SpeechStopped{Turn: m.nextTurn(), AudioMS: audioMS, EndMS: audioMS})
	m.send(transport.ActivityEnd{Empty: tap})
	if !tap {
		m.openUserTurn(m.at)
		return
	}
	m.do(Failed{Failure: FailureNoSpeech})
	if !m.caps.RespondNeeded && m.turn == nil {
		m.stop.pending, m.stop.at = true, m.at // this model may answer noise
	}
	if t := m.turn; t != nil && t.stage != done && t.cut == uncut && !t.spoke && !m.calls.Owed(t.number) {
		m.waitOn(t)
	}
}

// userInterrupt handles the stop button.
func (m *machine) userInterrupt() {
	if m.ending() {
		m.flush(FlushUserStop)
		m.end(m.endReason())
		return
	}
	m.lastActive, m.user.acted = m.at, true
	m.answers() // the user wants no answer
	m.interrupt(FlushUserStop)
	if m.caps.RespondNeeded && !m.response.underWay() {
		m.cancel() // an answer may have been requested that has not begun
	}
	if m.turn != nil && !m.underWay() {
		// No response is under way whose end could end the turn.
		m.stop.pending, m.stop.at = m.turn.stage != done, m.at
		m.turn.stage, m.turn.cut = done, cutOff
	}
}

// cancel asks the model to stop, if it can.
func (m *machine) cancel() {
	if m.caps.Cancel {
		m.send(transport.Interrupt{})
	}
}

// interrupt stops the answer: it drops unplayed audio and holds back the rest of the response.
func (m *machine) interrupt(reason FlushReason) {
	if m.user.voice == muted {
		return // the user hears the farewell to its end
	}
	m.settleTurn()
	m.carryOut(m.calls.Interrupted(m.beside))
	if m.flush(reason) {
		m.turn.interrupt(m.at)
	}
	if !m.response.underWay() {
		return
	}
	m.response.hold()
	if t := m.turn; t != nil && t.response == m.response.id && (reason != FlushUserSpeech || m.stopped(t)) {
		// Otherwise the notice is about a response of an earlier turn, or the model alone has heard something.
		t.interrupt(m.at)
	}
	if reason == FlushUserStop {
		m.cancel()
		if m.underWay() {
			m.turn.stopSent = m.caps.Cancel
		}
	}
}

// talkedOver flushes an answer that the user speaks over while the client still plays it, for a model that reports no
// interruption once it has finished. An answer that began after the user did is kept, because it may already answer
// them.
func (m *machine) talkedOver() {
	if !m.caps.InterruptNotice || !m.user.certain || m.response.underWay() || m.ending() || m.away() {
		return
	}
	unheard := false
	for i, it := range m.line.items {
		unheard = unheard || it.began.Before(m.user.spokenAt) && m.line.unheard(i, m.at)
	}
	if unheard && m.flushThose(FlushUserSpeech, func(it item) bool { return it.began.Before(m.user.spokenAt) }) {
		m.turn.interrupt(m.at)
	}
}

// flush drops every item that the user may not have heard in full. It reports whether the open turn loses audio.
func (m *machine) flush(reason FlushReason) (cutOff bool) {
	return m.flushThose(reason, func(item) bool { return true })
}

// flushThose is flush for some of the items.
func (m *machine) flushThose(reason FlushReason, which func(item) bool) (cutOff bool) {
	m.line.settle(m.at)
	var kept []item
	for i, it := range m.line.items {
		if !which(it) {
			kept = append(kept, it)
			continue
		}
		c := cut{item: it.id, heardMS: m.line.heard(i, m.at), leastMS: it.playedMS, sentMS: it.sent.Milliseconds(), audioMS: -1, deadline: m.at.Add(m.policy.ReportWait)}
		if it.ended {
			c.audioMS = it.audioMS
		}
		m.do(FlushItem{Item: it.id, Turn: it.turn, Reason: reason, HeardMS: c.heardMS, SentMS: c.sentMS})
		m.cuts = append(m.cuts, c)
		m.line.renote(it.id, func(it *SpokenItem) { it.Cut = true })
		cutOff = cutOff || m.Turn() == it.turn && !c.whole()
	}
	m.line.items = kept
	return cutOff
}

// whole reports whether the item was heard in full before it was flushed.
func (c cut) whole() bool { return c.heardMS == c.audioMS }

// settleCut reports the heard part of a flushed item to the model, unless all of it was.
func (m *machine) settleCut(c cut) {
	if m.caps.Truncate && !c.whole() {
		m.send(transport.Truncate{Item: c.item, AudioMS: c.heardMS})
	}
}

func (m *machine) audioBegan(in AudioBegan) {
	if !m.line.meet(in.Item) || m.response.held() || m.lastWordSaid() {
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
		m.response.hold() // too many items wait already: the rest of the response is dropped
		m.do(Failed{Turn: m.turn.number, Failure: FailureProvider})
		return
	}
	if m.ending() && m.farewell.item == "" && !m.preamble() {
		m.farewell.item = in.Item
	}
	m.remember(in.Item, m.turn.number, m.at)
	m.do(OpenItem{Item: in.Item, Turn: m.turn.number})
}

// preamble reports whether the current response began before the result of the tool that ends the session, and so
// cannot contain the farewell.
func (m *machine) preamble() bool {
	return m.caps.RespondNeeded && m.response.underWay() && m.response.id == m.farewell.response
}

func (m *machine) audioEnded(in AudioEnded) {
	m.changed()
	if it, ok := m.line.end(in.Item, in.AudioMS); ok {
		m.do(EndItem{Item: it.id, Turn: it.turn, AudioMS: it.audioMS})
	}
}

func (m *machine) audioSent(in AudioSent) {
	it, ok := m.line.send(in)
	if ok && m.turn != nil && m.turn.number == it.turn && m.turn.clientAt.IsZero() {
		m.turn.clientAt = m.at
		m.turn.late = m.turn.late || m.absence.back.After(m.turn.modelAt)
	}
}

func (m *machine) played(in Played) {
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
	case m.ending() && m.farewell.item == "" && m.farewell.written == "" && !m.known(ev.Item) && !m.preamble():
		m.farewell.written = ev.Item
	}
	u := m.remember(ev.Item, turn, m.utteranceStart(ev.Role))
	if ev.Role == transport.RoleUser && strings.TrimSpace(ev.Text) != "" {
		m.user.worded = max(m.user.worded, u.turn)
		m.user.wording = m.user.wording.with(u.turn, ev.Item, ev.Text)
		if ev.Final {
			m.words(ev.Item, u.turn)
		}
		if !u.since.Before(m.user.spokenAt) { // the words are of the latest speech
			m.user.certain = true
			m.talkedOver()
		}
	}
	told := Transcript{Turn: u.turn, ID: ev.Item, Role: ev.Role, Text: ev.Text, Final: ev.Final, StartedAt: u.since}
	m.do(told)
	switch {
	case ev.Role != transport.RoleAssistant:
	case !ev.Final:
		m.link.draft = told
	case m.link.draft.ID == ev.Item:
		m.link.draft = Transcript{}
	}
	if t := m.turn; t != nil && ev.Role == transport.RoleAssistant && u.turn == t.number && !u.since.Before(t.owedFrom) && strings.TrimSpace(ev.Text) != "" {
		// A model that answers in text alone has answered. Late words that it said before it called
		// a tool do not answer the tool's result.
		t.spoke = true
		m.answers()
	}
}

// unwanted reports whether a transcript must not reach the client.
func (m *machine) unwanted(ev transport.Transcript) bool {
	// The farewell may be text only, or its text may come before its audio.
	farewell := m.ending() && ev.Role == transport.RoleAssistant &&
		(m.farewell.item == "" && m.farewell.written == "" || m.farewell.item == ev.Item || m.farewell.written == ev.Item)
	switch {
	case m.suppressed.transcript && !farewell:
		return true
	case ev.Role == transport.RoleUser || m.known(ev.Item):
		return false
	case m.response.held(), m.lastWordSaid():
		return true
	default:
		return m.suppressed.audio && m.ending() && !farewell
	}
}

// userTurn returns the turn of an utterance that is known only by its transcript: the open turn, unless the user has
// spoken again since.
func (m *machine) userTurn() int {
	if m.turn != nil && !m.user.speaks() && !m.user.since.After(m.turn.startedAt) {
		return m.turn.number
	}
	return m.nextTurn()
}

// utteranceStart estimates when an utterance that is known only by its transcript began.
func (m *machine) utteranceStart(role transport.Role) time.Time {
	if role == transport.RoleUser && !m.user.since.IsZero() {
		return m.user.since
	}
	return m.at
}

// remember returns where an utterance began, and records a new one.
func (m *machine) remember(item string, turn int, since time.Time) utterance {
	for _, u := range m.user.utterances {
		if u.item == item && item != "" {
			return u
		}
	}
	u := utterance{item: item, turn: turn, since: since}
	if item != "" {
		m.user.utterances = newest(m.user.utterances, u, maxUtterances)
	}
	return u
}

func (m *machine) known(item string) bool {
	return slices.ContainsFunc(m.user.utterances, func(u utterance) bool { return u.item == item })
}

// nextTurn returns the turn of the user's current words: the open turn until the model begins to answer it, then the
// next.
func (m *machine) nextTurn() int {
	if t := m.turn; t != nil && t.modelAt.IsZero() && t.stage != done && t.cut == uncut {
		return t.number
	}
	return m.turns.last + 1 + m.turns.skip
}

func (m *machine) textID(id string) string {
	if id != "" {
		return id
	}
	return "text_" + strconv.Itoa(m.turns.last)
}
