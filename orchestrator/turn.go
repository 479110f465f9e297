package orchestrator

import (
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// openSpokenTurn begins the turn of the user's latest speech.
func (m *machine) openSpokenTurn() {
	m.openUserTurn(m.user.since)
	m.turn.knownAt, m.turn.unheard = m.user.known, m.user.unsure
}

// openUserTurn begins a turn that the user asked for: its calls get a new budget, and calls of earlier turns are
// answered first.
func (m *machine) openUserTurn(inputEnd time.Time) {
	m.openTurn(inputEnd)
	m.supersede()
	m.calls.Book().BeginTurn()
}

// openCausedTurn begins a turn caused by an answered or expired confirmation, a late result or a tool's message. It
// keeps the previous budget, because otherwise each answer would let the model ask again without limit.
func (m *machine) openCausedTurn() {
	acted := m.user.acted
	m.user.acted = false
	m.openTurn(m.at)
	m.turn.caused = true
	m.supersede()
	m.user.acted = acted
}

// openTurn begins the next turn and ends an open one. A turn that the model begins unasked keeps the previous budget.
func (m *machine) openTurn(inputEnd time.Time) {
	if m.user.acted {
		m.calls.Book().BeginTurn()
	}
	m.user.acted, m.user.unanswered = false, false
	if m.turn != nil {
		if m.turn.stage != done {
			m.turn.cut = cutOff
		}
		m.endTurn()
	}
	m.turns.last, m.turns.gaps, m.turns.skip = m.turns.last+1+m.turns.skip, m.turns.gaps+m.turns.skip, 0
	m.turns.began, m.turns.answered, m.lastActive = m.at, nil, m.at
	m.stop.pending = false
	m.turn = &turn{number: m.turns.last, startedAt: m.at, inputEnd: inputEnd, knownAt: m.at}
	if c := m.turns.carry; c != nil {
		m.turn.usage, m.turn.cost = c.usage, c.cost
	}
	m.turns.carry = nil
	if m.down() {
		m.turn.queued = m.link.count
	}
	m.do(TurnStarted{m.turns.last})
}

// openModelTurn begins a turn with the model's answer to speech that has no turn yet, or unasked.
func (m *machine) openModelTurn() {
	answers := m.user.unanswered && m.at.Sub(m.user.since) < m.policy.NudgeAfter
	m.openTurn(m.at)
	m.turn.owedFrom = m.at
	m.turn.unheard = true
	switch {
	case m.user.speaks() && m.heardEnd():
		m.turn.inputEnd, m.turn.unheard = m.user.quiet, false
	case answers:
		m.turn.inputEnd, m.turn.knownAt, m.turn.unheard = m.user.since, m.user.known, m.user.unsure
	}
}

// openTurnMidway begins a turn when the model acts outside of one. The rest of the current response belongs to the new
// turn.
func (m *machine) openTurnMidway() {
	m.openModelTurn()
	if m.response.underWay() {
		m.turn.response = m.response.id
	}
}

// endTurn closes the open turn.
func (m *machine) endTurn() {
	t := m.turn
	m.turn = nil
	m.lastActive = m.at
	status := TurnCompleted
	if t.cut != uncut || t.lost || t.stage != done {
		status = TurnInterrupted
	}
	if status == TurnCompleted {
		m.turns.answered = m.remembered(t)
		m.link.tries.proved()
	}
	m.do(TurnEnded{Turn: t.number, Status: status, Usage: t.usage, Cost: t.cost, Latency: t.latency()})
}

// failTurn ends the open turn with an error. Until the user acts, the model keeps the budget of this turn.
func (m *machine) failTurn(f Failure, retryable bool) {
	t := m.turn
	m.turn = nil
	m.lastActive = m.at
	m.answers()
	m.do(Failed{Turn: t.number, Failure: f, Retryable: retryable},
		TurnEnded{Turn: t.number, Status: TurnFailed, Usage: t.usage, Cost: t.cost, Latency: t.latency()})
}

// interrupt records that the user has stopped the answer.
func (t *turn) interrupt(at time.Time) {
	if t.cut == uncut {
		t.cut, t.cutAt = cutByUser, at
	}
}

// abandonedAt returns when an interrupted turn ends without the model's report; zero without one.
func (s State) abandonedAt() time.Time {
	t := s.turn
	if t == nil || t.cut != cutByUser || t.stage == done {
		return time.Time{}
	}
	return t.cutAt.Add(s.policy.NoAnswerAfter)
}

// watchInterrupted ends an interrupted turn whose end the model never reports.
func (m *machine) watchInterrupted() {
	if at := m.abandonedAt(); !at.IsZero() && !m.at.Before(at) {
		m.endTurn()
	}
}

// unfinishedAt returns when a fully heard turn ends without the model's report; zero without one.
func (s State) unfinishedAt() time.Time {
	t := s.turn
	if t == nil || t.stage == done || t.cut != uncut || !t.spoke || s.calls.Owed(t.number) {
		return time.Time{}
	}
	since := s.afterWork(s.signAt)
	if len(s.line.items) > 0 {
		heard := s.line.lastAt(false)
		if heard.IsZero() {
			return heard
		}
		if heard.After(since) {
			since = heard
		}
	}
	return since.Add(s.policy.NoAnswerAfter)
}

// watchUnfinished ends a turn after a long silence, because the report of its end may be lost.
func (m *machine) watchUnfinished() {
	if at := m.unfinishedAt(); !at.IsZero() && !m.at.Before(at) {
		m.turn.stage = done
	}
}

// unendedAt returns when an unfinished item counts as complete; zero without one. While a tool runs, the model may
// continue the item.
func (s State) unendedAt() time.Time {
	since, ok := s.line.openUntil()
	if !ok || s.turn != nil && s.calls.Owed(s.turn.number) {
		return time.Time{}
	}
	for _, t := range []time.Time{s.signAt, s.link.awayAt, s.workedUntil()} {
		if t.After(since) {
			since = t
		}
	}
	return since.Add(s.policy.NoAnswerAfter)
}

// watchUnended completes an item after a long silence, because the report of its end may be lost.
func (m *machine) watchUnended() {
	if at := m.unendedAt(); at.IsZero() || m.at.Before(at) {
		return
	}
	for _, it := range m.line.items {
		if ended, ok := m.line.end(it.id, it.sent.Milliseconds()); ok {
			m.do(EndItem{Item: ended.id, Turn: ended.turn, AudioMS: ended.audioMS})
		}
	}
	m.line.settle(m.at)
}

// overlookedAt returns the deadline for speech that the model ended but never answered; zero without such speech. Sound
// during an answer may be the loudspeaker and gets no turn.
func (s State) overlookedAt() time.Time {
	if !s.user.unanswered || s.user.speaks() || !s.caps.SpeechEvents || s.turn != nil || s.ending() || s.away() {
		return time.Time{}
	}
	return s.afterWork(s.user.known).Add(s.policy.NudgeAfter)
}

// watchOverlooked opens a turn for overlooked speech and asks for its answer.
func (m *machine) watchOverlooked() {
	if at := m.overlookedAt(); !at.IsZero() && !m.at.Before(at) {
		m.openSpokenTurn()
		m.turn.owedFrom = m.at
		m.nudge(m.turn)
	}
}

// underWay reports whether the open turn's own response is under way. Responses of earlier turns may never report their
// end, so nothing waits for them.
func (s State) underWay() bool {
	return s.response.underWay() && s.turn != nil && s.turn.response == s.response.id
}

func (t *turn) latency() *Latency {
	if t.waited != nil {
		return t.waited
	}
	if t.clientAt.IsZero() || t.inputEnd.IsZero() || t.unheard || t.late {
		return nil
	}
	end := t.inputEnd
	if end.After(t.knownAt) {
		end = t.knownAt // a model may be wrong about where speech ended
	}
	// Each part begins where the one before it ends.
	return &Latency{
		Total: t.clientAt.Sub(end), Detection: t.knownAt.Sub(end),
		Provider: t.modelAt.Sub(t.knownAt), Gateway: t.clientAt.Sub(t.modelAt),
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
	if m.turn != nil && !m.response.underWay() && m.turn.modelAt.IsZero() && m.turn.stage != done {
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

func (m *machine) responseStarted(ev transport.ResponseStarted) {
	m.changed()
	if !m.proves() {
		return
	}
	m.response.begin(ev.ID)
	if m.stop.pending && (!m.user.spokenAt.After(m.stop.at) || m.user.voice == pressing || m.user.speaks() && m.caps.SpeechEvents) {
		// The user pressed stop, or only tapped the button for talking, before this answer began, and it cannot answer anything that they
		// have said since.
		m.stop.pending = false
		m.response.hold()
		if m.user.voice != pressing { // the press has stopped it
			m.cancel()
		}
		return
	}
	if m.lastWordSaid() {
		m.response.hold() // the farewell was the last answer
		m.cancel()
		return
	}
	if t := m.turn; t != nil && t.cut != uncut && m.user.speaks() && m.caps.SpeechEvents {
		m.response.hold() // requested before the user spoke: it belongs to the answer that they stopped
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

// answersBeside reports whether the new response answers words said while a background call ran: the turn has already
// had its own answer.
func (m *machine) answersBeside(t *turn) bool {
	return t.stage == owing && !t.modelAt.IsZero() && m.user.acted && !m.caps.RespondNeeded
}

func (m *machine) responseDone(ev transport.ResponseDone) {
	if ev.ID == m.response.id {
		m.response.state = idle
	}
	t := m.turn
	if t == nil || t.response != ev.ID {
		return // it belongs to a turn that is over
	}
	switch {
	case m.failed(t, ev):
		return
	case ev.Status == transport.ResponseInterrupted && m.user.voice == muted:
		t.cut = uncut // the user hears the farewell, as far as it has come, to its end
	case ev.Status == transport.ResponseInterrupted && (t.cut != uncut || m.stopped(t)):
		if t.cut == uncut {
			t.cut = cutOff
		}
	case ev.Status == transport.ResponseInterrupted:
		m.waitOn(t)
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

// nothingSaid handles a model turn without an answer. If the user waits for one, it is requested as after an empty
// answer.
func (m *machine) nothingSaid() {
	t := m.turn
	if t == nil || t.stage == done || t.cut != uncut || t.nudge == nudgeSoon || m.response.underWay() || m.user.speaks() || m.calls.Owed(t.number) {
		return
	}
	m.missesSpeech(t)
}

// stopped reports whether the user can have stopped an answer that the model broke off: it has spoken or called a tool,
// or the user spoke after the turn began. Otherwise the model is expected to continue.
func (m *machine) stopped(t *turn) bool {
	return t.spoke || t.calls > 0 || m.user.speaks() && m.user.spokenAt.After(t.startedAt)
}

// missesSpeech handles an answer without speech: the model is asked once more, then the turn fails.
func (m *machine) missesSpeech(t *turn) {
	switch {
	case t.spoke || t.cut != uncut || m.ending() && !t.modelAt.IsZero():
	case m.atWork() && t.nudge == nudged:
		t.stage = answering
	case t.nudge == nudged:
		m.failTurn(FailureNoAnswer, true)
	default:
		m.waitOn(t)
	}
}

// waitOn waits for another response to the turn. The model is asked for it once.
func (m *machine) waitOn(t *turn) {
	t.stage = answering
	if t.nudge != nudged {
		t.nudge, t.nudgeAt = nudgeSoon, m.at.Add(nudgeGrace)
	}
}

// nudgeGrace is how long a model may take to continue after an answer without speech. Some end one before they speak
// about a tool's result.
const nudgeGrace = time.Second

// nudge asks a silent model once more for its answer.
func (m *machine) nudge(t *turn) {
	t.nudge = nudged
	switch {
	case !m.caps.RespondNeeded:
		m.turns.nudges++
		m.sendText(m.marked(m.mayCall(t, prompts.NudgeNotice)))
	case !m.underWay() || t.calls > 0:
		// If the model has its results and says nothing, the end of its response may be lost.
		m.turns.nudges++
		m.respond(t)
	}
}

func (m *machine) used(in Used) {
	m.spending.amount = m.spending.amount.Plus(in.Cost).Minus(in.Estimate)
	if in.Late {
		return
	}
	if m.turn == nil {
		next := carried{in.Tokens, in.Cost}
		if was := m.turns.carry; was != nil {
			next = carried{was.usage.Add(in.Tokens), was.cost.Plus(in.Cost)}
		}
		m.turns.carry = &next
		return
	}
	m.turn.usage, m.turn.cost = m.turn.usage.Add(in.Tokens), m.turn.cost.Plus(in.Cost)
}

func (m *machine) userText(in UserText) {
	if m.ending() {
		m.do(Failed{Failure: FailureEnding})
		return
	}
	m.user.spokenAt, m.user.acted = m.at, true
	m.interrupt(FlushUserText)
	if m.phase == PhaseActive && m.overspent() {
		m.spending.over, m.spending.turn = true, 0 // this step says goodbye instead of an answer
		m.do(Failed{Failure: FailureEnding})
		return
	}
	m.typed(in.ID, in.Text)
}

// userImage sends an image to the model. It is not repeated on another connection.
func (m *machine) userImage(in UserImage) {
	switch {
	case m.ending():
		m.do(Failed{Failure: FailureEnding})
	case !m.caps.Images:
		m.do(Failed{Failure: FailureNotAvailable})
	case m.down():
		m.do(Failed{Failure: FailureUnsent, Retryable: true})
	default:
		m.send(transport.Image(in))
	}
}

// typed opens a turn with typed text.
func (m *machine) typed(id, text string) {
	m.openUserTurn(m.at)
	m.say(id, text)
}

// say sends text on the user's behalf to the model and shows it to the client.
func (m *machine) say(id, text string) {
	m.show(id, text)
	m.send(transport.UserText{Text: text})
}

// show shows text on the user's behalf to the client.
func (m *machine) show(id, text string) {
	m.user.worded, m.user.final = m.turns.last, m.turns.last
	m.user.wording = m.user.wording.with(m.turns.last, m.textID(id), text)
	m.do(Transcript{Turn: m.turns.last, ID: m.textID(id), Role: transport.RoleUser, Text: text, Final: true, StartedAt: m.at})
}
