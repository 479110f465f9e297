package orchestrator

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/textutil"
	"voicegw/prompts"
	"voicegw/transport"
)

// minSpeech is how long the gateway's detector must hear speech before an answer is owed. A cough is shorter.
const minSpeech = 400 * time.Millisecond

// speechSilence ends speech whose end the model does not report, after the gateway has heard nothing for this long.
const speechSilence = 15 * time.Second

// quietTime is how long a notice waits after the user's speech, because the turn of that speech comes first.
const quietTime = 1500 * time.Millisecond

func (in UserHeard) take(m *machine) {
	m.user.earAt, m.user.earMS = m.at, in.AudioMS
	if in.Sustained && m.user.voice == speaking {
		m.user.certain = true
		m.talkedOver()
	}
}

func (in UserQuiet) take(m *machine) {
	m.user.quiet = in.EndAt
	if t := m.turn; t != nil && t.unheard && m.user.heardEnd() && in.EndAt.Before(t.startedAt) {
		// The model has answered before it reported the end of the speech.
		t.inputEnd, t.unheard = in.EndAt, false
	}
}

func (u user) heardEnd() bool { return !u.quiet.Before(u.spokenAt) && !u.quiet.IsZero() }

func (in UserSpeechStarted) take(m *machine) {
	if m.user.voice == muted {
		return
	}
	m.link.changed()
	m.user.voice, m.user.acted, m.user.unanswered, m.user.certain = speaking, true, false, false
	m.lastActive, m.user.spokenAt = m.at, in.At
	m.user.earAt, m.user.earMS = m.at, in.AudioMS
	m.user.item, m.user.since = in.Item, in.At
	m.user.settled.begins(in.AudioMS)
	m.user.remember(in.Item, m.nextTurn(), in.At)
	m.do(SpeechStarted{Turn: m.nextTurn(), AudioMS: in.AudioMS})
	if !m.caps.InterruptNotice {
		// This model stops automatically when it hears the user, and sends no notice of it.
		m.interrupt(FlushUserSpeech)
	}
}

func (in UserSpeechStopped) take(m *machine) {
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
	if !m.caps.SpeechEvents && (!m.underWay() || m.response.held) && !m.Audible(m.at) &&
		in.SpeechMS >= minSpeech.Milliseconds() {
		m.openSpokenTurn()
		return
	}
	m.user.unanswered = true
}

// speechLostAt returns when the user's speech counts as over without a report; zero if the user is not speaking.
func (s State) speechLostAt() time.Time {
	if s.user.voice != speaking {
		return time.Time{}
	}
	return s.user.earAt.Add(speechSilence)
}

// giveUpSpeech ends speech that the gateway has not heard for long. Without a turn, it reports that no answer comes.
func (m *machine) giveUpSpeech() {
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

// take handles push-to-talk. Pressing the button interrupts at once.
func (in UserActivity) take(m *machine) {
	if m.user.voice == muted || m.sayings.noticeOpen() {
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

// released handles the end of a press. A tap begins no turn, and an answer that it has not stopped is asked for again.
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
		t.waitOn(m.at)
	}
}

func (UserInterrupt) take(m *machine) {
	if m.ending() {
		m.flush(FlushUserStop)
		m.end(m.endReason())
		return
	}
	if m.sayings.noticeOpen() {
		return
	}
	m.lastActive, m.user.acted = m.at, true
	m.answers() // the user wants no answer
	m.interrupt(FlushUserStop)
	if m.caps.RespondNeeded && !m.response.underWay {
		m.cancel() // an answer may have been requested that has not begun
	}
	if m.turn != nil && !m.underWay() {
		// No response is under way whose end could end the turn.
		m.stop.pending, m.stop.at = m.turn.stage != done, m.at
		m.turn.stage, m.turn.cut = done, cutOff
	}
}

// talkedOver flushes a complete answer that the user speaks over. One that began after the user did may answer them.
func (m *machine) talkedOver() {
	if !m.caps.InterruptNotice || !m.user.certain || m.response.underWay && !m.exactSounds() || m.ending() || m.away() {
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

func (c cut) whole() bool { return c.heardMS == c.audioMS }

// turnOf returns the turn of an utterance; an unknown one belongs to the latest.
func (u user) turnOf(item string, latest int) int {
	if i := slices.IndexFunc(u.utterances, func(o utterance) bool { return o.item == item }); i >= 0 {
		return u.utterances[i].turn
	}
	return latest
}

func (u *user) remember(item string, turn int, since time.Time) utterance {
	for _, o := range u.utterances {
		if o.item == item && item != "" {
			return o
		}
	}
	o := utterance{item: item, turn: turn, since: since}
	if item != "" {
		u.utterances = newest(u.utterances, o, maxUtterances)
	}
	return o
}

func (u *user) knows(item string) bool {
	return slices.ContainsFunc(u.utterances, func(o utterance) bool { return o.item == item })
}

func textID(id string, turn int) string {
	if id != "" {
		return id
	}
	return "text_" + strconv.Itoa(turn)
}

func (m *machine) watchOverlooked() {
	if m.overdue(m.overlookedAt()) {
		m.openSpokenTurn()
		m.turn.owedFrom = m.at
		m.nudge(m.turn)
	}
}

func (m *machine) inputCommitted(ev transport.InputCommitted) {
	if m.user.voice == muted {
		return // it was said before the farewell, which is the last answer
	}
	told := !m.user.speaks() // the end of the speech is already known
	if !told {
		m.speechOver(m.at, true)
	}
	if m.turn != nil && !m.response.underWay && m.turn.modelAt.IsZero() && m.turn.stage != done {
		// The gateway opened this turn itself, when the speech stopped.
		return
	}
	if told && !m.user.since.IsZero() && m.user.item == ev.Item {
		m.openSpokenTurn()
		if m.at.Sub(m.user.since) >= m.policy.NudgeAfter {
			m.turn.owedFrom = m.at // the model has only now taken notice of the speech
		}
		return
	}
	if !told {
		m.openSpokenTurn()
		return
	}
	m.openUserTurn(m.at)
}

// begins opens a turn for an input that wants an answer. It returns false if the session gives none, or not yet.
func (m *machine) begins(in Input, interrupts bool) bool {
	if m.ending() {
		m.do(Failed{Failure: FailureEnding})
		return false
	}
	if m.holds(in) {
		return false
	}
	m.user.spokenAt, m.user.acted = m.at, true
	if interrupts {
		m.interrupt(FlushUserText)
	}
	if m.phase == PhaseActive && m.overspent() {
		m.spending.over, m.spending.turn = true, 0 // this step says goodbye instead of an answer
		m.do(Failed{Failure: FailureEnding})
		return false
	}
	m.openUserTurn(m.at)
	return true
}

func (in UserText) take(m *machine) {
	if m.begins(in, true) {
		m.say(in.ID, in.Text)
	}
}

// take opens a turn for an answer that no words of the user ask for. Audio that still plays is not flushed.
func (in UserAsk) take(m *machine) {
	if !m.begins(in, false) {
		return
	}
	switch {
	case m.caps.RespondNeeded:
		m.giveBefore()
		m.asked()
		m.send(transport.Respond{Instructions: m.mark.Foreign(in.Instructions)})
	case in.Instructions != "":
		m.turn.told = m.mark.Foreign(in.Instructions)
		m.send(transport.UserText{Text: in.Instructions})
	default:
		m.sendNotice(prompts.NudgeNotice)
	}
}

// take opens the session: with the pending request, with the context of a continued conversation, with a greeting, or
// silently.
func (in Began) take(m *machine) {
	m.phase = PhaseActive
	if text := in.Notice; text != "" {
		in.Notice = ""
		m.addExact(exact{Exact: Exact{Text: text, Notice: true}})
		m.sayings.held = append(m.sayings.held, in)
		return
	}
	for _, tool := range conversation.CalledIn(in.Context) {
		m.calls.Done(0, tool, nil)
	}
	switch {
	case !textutil.IsBlank(in.PendingRequest):
		m.openUserTurn(m.at)
		if in.Context == "" {
			m.say("pending_request", in.PendingRequest)
			return
		}
		m.show("pending_request", in.PendingRequest)
		m.sendNotice(prompts.WrittenBefore(in.Context), prompts.AnswerFirst(in.PendingRequest))
	case in.Context != "":
		m.openUserTurn(m.at)
		m.sendNotice(prompts.WrittenBefore(in.Context), prompts.GoOnByVoice)
	case in.Greeting != "":
		m.openUserTurn(m.at)
		m.turn.told = m.mark.Foreign(in.Greeting)
		m.send(transport.UserText{Text: in.Greeting})
	}
}

// settled is the position up to which the user's speech needs no replay, in ms on the client's audio clock.
type settled struct {
	upTo   int64 // everything before it is settled
	owed   bool  // speech that began at from is not settled
	from   int64
	start  int64 // start of the latest speech
	end    int64 // end of the latest finished speech
	before int64 // end of the speech before the latest

	answered answeredSpeech
}

// answeredSpeech is speech whose answer began before its words were known. If the answer is lost, it is replayed.
type answeredSpeech struct {
	turn   int
	fromMS int64
}

// leadTime is how long before its report speech may have begun, in ms.
const leadTime = 1000

func (s *settled) begins(ms int64) {
	s.start, s.before = ms, s.end
	if !s.owed {
		s.owed, s.from = true, ms
	}
}

func (s *settled) stops(ms int64) { s.end = max(ms, s.start) }

// settle records that all speech is settled or, if more was said since, all before the latest.
func (s *settled) settle(all bool) {
	if all {
		s.upTo, s.owed = max(s.upTo, s.end), false
		return
	}
	s.upTo = max(s.upTo, s.before)
	if s.owed {
		s.from = max(s.from, s.start)
	}
}

func (u *user) words(item string, turn int) {
	u.final = max(u.final, turn)
	u.settled.settle(!u.speaks() && (item == u.item || u.item == ""))
}

// Settled returns the position up to which the user's speech is settled, in ms on the client's audio clock, which is at
// now.
func (s State) Settled(now int64) int64 {
	u := s.user.settled
	if u.owed {
		now = u.from
	}
	return u.wanted(now)
}

// wanted returns the position from which speech that begins at ms must be heard.
func (s settled) wanted(ms int64) int64 { return max(s.upTo, ms-leadTime) }

// wording has the user's words of a turn, to repeat them on a new connection. It is immutable.
type wording struct {
	turn  int
	parts []utteredText // in the order of their beginning
}

type utteredText struct{ item, text string }

// maxWording limits the words, in bytes. A longer request is not repeated; the model is asked to continue with it.
const maxWording = 32 << 10

// with returns the words including all of an item so far; w may be nil. Only the newest turn's words are kept.
func (w *wording) with(turn int, item, text string) *wording {
	if strings.TrimSpace(text) == "" || w != nil && turn < w.turn {
		return w
	}
	next := &wording{turn: turn}
	if w != nil && turn == w.turn {
		next.parts = slices.Clone(w.parts)
	}
	at := slices.IndexFunc(next.parts, func(p utteredText) bool { return p.item == item })
	if at < 0 {
		next.parts = append(next.parts, utteredText{item, text})
	} else {
		next.parts[at].text = text
	}
	return next
}

func (w *wording) of(turn int) string {
	if w == nil || turn != w.turn {
		return ""
	}
	if len(w.parts) == 1 && len(w.parts[0].text) <= maxWording {
		return w.parts[0].text
	}
	var words []string
	length := 0
	for _, p := range w.parts {
		words = append(words, strings.TrimSpace(p.text))
		length += len(p.text)
	}
	if length > maxWording {
		return ""
	}
	return strings.Join(words, " ")
}
