package orchestrator

import (
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// openUserTurn begins a turn that the user has asked for: its calls have a budget of
// their own, and nothing of earlier turns is owed to the model any more.
func (m *machine) openUserTurn(inputEnd time.Time) {
	m.openTurn(inputEnd)
	m.supersede()
	m.calls.Book().BeginTurn()
}

// openCausedTurn begins a turn that a person's answer to a question has caused, or the end of
// a question, a late result, or a tool's message: it goes on with the budget of the one
// before, and so does what the model does next by itself. With a budget of its own, each
// answer would let a model ask again, and a tool that asks for a turn could go on for ever.
func (m *machine) openCausedTurn() {
	acted := m.userActed
	m.userActed = false
	m.openTurn(m.at)
	m.supersede()
	m.userActed = acted
}

// openTurn begins the next turn, which may be the model's own idea; one that is still
// open ends first. Without a word of the user's it goes on with the budget of the one
// before: or a model could go on for ever by itself.
func (m *machine) openTurn(inputEnd time.Time) {
	if m.userActed {
		m.calls.Book().BeginTurn()
	}
	m.userActed, m.unanswered = false, false
	if m.turn != nil {
		if !m.turn.modelDone {
			m.turn.interrupted = true
		}
		m.endTurn()
	}
	m.lastTurn++
	m.turnBegan, m.lastActive = m.at, m.at
	m.stopped = false
	m.turn = &turn{number: m.lastTurn, startedAt: m.at, inputEnd: inputEnd, knownAt: m.at, usage: m.carry}
	m.carry = transport.Tokens{}
	m.do(TurnStarted{m.lastTurn})
}

// openModelTurn begins a turn that the model has begun itself: with its answer to speech
// for which nobody has begun one yet, or unasked.
func (m *machine) openModelTurn() {
	answers := m.unanswered && m.at.Sub(m.speechSince) < m.policy.NudgeAfter
	m.openTurn(m.at)
	m.turn.owedFrom = m.at
	m.turn.unheard = m.speaking
	if answers {
		m.turn.inputEnd, m.turn.knownAt = m.speechSince, m.speechKnown
	}
}

// openTurnMidway begins a turn with what the model does outside of one: the rest of its
// response belongs to that turn, and ends it.
func (m *machine) openTurnMidway() {
	m.openModelTurn()
	if m.responding {
		m.turn.response = m.responseID
	}
}

// endTurn closes the open turn.
func (m *machine) endTurn() {
	t := m.turn
	m.turn = nil
	m.lastActive = m.at
	status := TurnCompleted
	if t.interrupted || !t.modelDone {
		status = TurnInterrupted
	}
	m.do(TurnEnded{Turn: t.number, Status: status, Usage: t.usage, Latency: t.latency()})
}

// failTurn ends the open turn with an error. What the model does next without its user
// goes on with the budget of this turn.
func (m *machine) failTurn(f Failure, retryable bool) {
	t := m.turn
	m.turn = nil
	m.lastActive = m.at
	m.do(Failed{Turn: t.number, Failure: f, Retryable: retryable},
		TurnEnded{Turn: t.number, Status: TurnFailed, Usage: t.usage, Latency: t.latency()})
}

// interrupt notes that the user has stopped the answer.
func (t *turn) interrupt(at time.Time) {
	if !t.interrupted {
		t.interrupted, t.interruptedAt = true, at
	}
}

// abandonedAt is when an interrupted turn ends although the model has not said that its
// answer is over; zero if it is not waited for.
func (s State) abandonedAt() time.Time {
	t := s.turn
	if t == nil || t.interruptedAt.IsZero() || t.modelDone {
		return time.Time{}
	}
	return t.interruptedAt.Add(s.policy.NoAnswerAfter)
}

// watchInterrupted ends a turn whose interrupted answer the model never ends: its word
// may be lost, and the user waits for nothing more.
func (m *machine) watchInterrupted() {
	if at := m.abandonedAt(); !at.IsZero() && !m.at.Before(at) {
		m.endTurn()
	}
}

// unfinishedAt is when a turn whose answer has been heard ends although the model has not
// said that the answer is over; zero if that is not waited for.
func (s State) unfinishedAt() time.Time {
	t := s.turn
	if t == nil || t.modelDone || t.interrupted || !t.spoke || s.calls.Owed(t.number) {
		return time.Time{}
	}
	since := s.signAt
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

// watchUnfinished ends a turn of which nothing has come for long: the model's word that
// its answer is over may be lost, and whatever waits for the end of the turn would wait
// for ever.
func (m *machine) watchUnfinished() {
	if at := m.unfinishedAt(); !at.IsZero() && !m.at.Before(at) {
		m.turn.modelDone = true
	}
}

// unendedAt is when an item that the model has not ended counts as complete; zero if there is
// none. While a tool runs, the model may yet go on with it.
func (s State) unendedAt() time.Time {
	since, ok := s.line.openUntil()
	if !ok || s.turn != nil && s.calls.Owed(s.turn.number) {
		return time.Time{}
	}
	if s.signAt.After(since) {
		since = s.signAt
	}
	return since.Add(s.policy.NoAnswerAfter)
}

// watchUnended ends an item of which nothing has come for long after what was sent of it was
// played: the model's word that it is complete may be lost.
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

// underWay says whether the open turn's own response is under way. One that an earlier
// turn has left behind is nothing to wait for: its end may never be told.
func (s State) underWay() bool {
	return s.responding && s.turn != nil && s.turn.response == s.responseID
}

func (t *turn) latency() *Latency {
	if t.clientAt.IsZero() || t.inputEnd.IsZero() || t.unheard {
		return nil
	}
	end := t.inputEnd
	if end.After(t.knownAt) {
		end = t.knownAt // a model may err in where speech ended
	}
	// Each part begins where the one before it ends.
	return &Latency{
		Total: t.clientAt.Sub(end), Detection: t.knownAt.Sub(end),
		Provider: t.modelAt.Sub(t.knownAt), Gateway: t.clientAt.Sub(t.modelAt),
	}
}

func (m *machine) inputCommitted(ev transport.InputCommitted) {
	if m.muted {
		return // it was said before the farewell, which is the last answer
	}
	told := !m.speaking // of its end
	m.speaking = false
	if m.turn != nil && !m.responding && m.turn.modelAt.IsZero() && !m.turn.modelDone {
		// The gateway has opened this turn already, where the speech stopped.
		return
	}
	if told && !m.speechSince.IsZero() && m.speechItem == ev.Item {
		m.openUserTurn(m.speechSince)
		m.turn.knownAt = m.speechKnown
		return
	}
	m.openUserTurn(m.at)
}

func (m *machine) responseStarted(ev transport.ResponseStarted) {
	if ev.ID != m.responseID {
		m.held = false
	}
	m.responding, m.responseID = true, ev.ID
	if m.stopped && (!m.spokenAt.After(m.stoppedAt) || m.speaking && m.caps.SpeechEvents) {
		// The user pressed stop before this answer had begun, and it cannot answer anything
		// that they have said since.
		m.stopped, m.held = false, true
		m.cancel()
		return
	}
	if m.lastWordSaid() {
		m.held = true // the farewell was the last answer
		m.cancel()
		return
	}
	if t := m.turn; t != nil && t.interrupted && m.speaking && m.caps.SpeechEvents {
		m.held = true // it was asked for before the user spoke: the rest of what they have stopped
		m.cancel()
		return
	}
	if t := m.turn; t != nil && m.answersBeside(t) {
		t.modelDone = true
	}
	if m.turn == nil || m.turn.modelDone || m.turn.interrupted {
		m.openModelTurn()
	}
	m.turn.response, m.turn.calls, m.turn.waiting, m.turn.nudgeAt = ev.ID, 0, false, time.Time{}
}

// answersBeside says whether the response that begins answers what the user has said
// while a call of the turn ran beside the conversation: the turn has had its own answer.
func (m *machine) answersBeside(t *turn) bool {
	return t.waiting && !t.modelAt.IsZero() && m.userActed && !m.caps.RespondNeeded
}

func (m *machine) responseDone(ev transport.ResponseDone) {
	if ev.ID == m.responseID {
		m.responding, m.held = false, false
	}
	t := m.turn
	if t == nil || t.response != ev.ID {
		return // it belongs to a turn that is over
	}
	switch {
	case ev.Status == transport.ResponseFailed:
		m.failTurn(FailureProvider, ev.Err != nil && ev.Err.Kind.Retryable())
		return
	case ev.Status == transport.ResponseInterrupted:
		t.interrupted = !m.muted // what has come of a farewell is heard to its end
	case t.calls > 0 && m.caps.RespondNeeded || m.calls.Owed(t.number):
		// The model waits for results, or to be asked for its answer.
		t.waiting = true
		m.settleCalls(t, m.calls.Owed(t.number))
		return
	}
	if t.stopSent && ev.Status == transport.ResponseCompleted && !m.caps.RespondNeeded {
		// It was over when the stop arrived. A model that answers by itself may take the
		// stop for a turn of the user's, and answer that.
		m.stopped, m.stoppedAt = true, t.interruptedAt
	}
	t.modelDone = true
	m.missesSpeech(t)
}

// missesSpeech sees to an answer that is complete and was not heard: the model is asked
// once more, and then the turn fails.
func (m *machine) missesSpeech(t *turn) {
	switch {
	case t.spoke || t.interrupted || m.ending() && !t.modelAt.IsZero():
	case t.nudged:
		m.failTurn(FailureNoAnswer, true)
	default:
		t.modelDone = false
		t.nudgeAt = m.at.Add(nudgeGrace)
	}
}

// nudgeGrace is how long a model may take to go on after an answer without a sound:
// some end one before they speak of a tool's result.
const nudgeGrace = time.Second

// nudge asks a silent model for its answer once more.
func (m *machine) nudge(t *turn) {
	t.nudged = true
	switch {
	case !m.caps.RespondNeeded:
		m.sendNotice(prompts.NudgeNotice)
	case !m.underWay() || t.calls > 0:
		// Of one that has its results and says nothing, the end may be lost.
		m.respond(t)
	}
}

func (m *machine) usage(ev transport.Usage) {
	if m.turn == nil {
		m.carry = m.carry.Add(ev.Tokens)
		return
	}
	m.turn.usage = m.turn.usage.Add(ev.Tokens)
}

func (m *machine) userText(in UserText) {
	if m.ending() {
		m.do(Failed{Failure: FailureEnding})
		return
	}
	m.spokenAt, m.userActed = m.at, true
	m.interrupt(FlushUserText)
	m.typed(in.ID, in.Text)
}

// typed opens a turn with text.
func (m *machine) typed(id, text string) {
	m.openUserTurn(m.at)
	m.say(id, text)
}

// say gives the model text of the user's side, and shows it.
func (m *machine) say(id, text string) {
	m.show(id, text)
	m.send(transport.UserText{Text: text})
}

// show lets the client see text of the user's side.
func (m *machine) show(id, text string) {
	m.do(Transcript{Turn: m.lastTurn, ID: m.textID(id), Role: transport.RoleUser, Text: text, Final: true, StartedAt: m.at})
}
