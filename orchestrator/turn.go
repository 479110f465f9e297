package orchestrator

import (
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// openTurn begins the next turn and ends an open one. A turn that the model begins unasked keeps the previous budget.
func (m *turnControl) openTurn(inputEnd time.Time) {
	if m.user.acted {
		m.refused = 0
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
func (m *turnControl) openModelTurn() {
	answers := m.user.unanswered && m.at.Sub(m.user.since) < m.policy.NudgeAfter
	m.openTurn(m.at)
	m.turn.owedFrom = m.at
	m.turn.unheard = true
	switch {
	case m.user.speaks() && m.user.heardEnd():
		m.turn.inputEnd, m.turn.unheard = m.user.quiet, false
	case answers:
		m.turn.inputEnd, m.turn.knownAt, m.turn.unheard = m.user.since, m.user.known, m.user.unsure
	}
}

// openTurnMidway begins a turn when the model acts outside of one, with the rest of the current response.
func (m *turnControl) openTurnMidway() {
	m.openModelTurn()
	if m.response.underWay {
		m.turn.response = m.response.id
	}
}

func (m *turnControl) endTurn() {
	t := m.turn
	m.checkClaims(t.number)
	m.turn = nil
	m.lastActive = m.at
	status := TurnCompleted
	if t.cut != uncut || t.lost || t.stage != done {
		status = TurnInterrupted
	}
	if status == TurnCompleted && !t.exact {
		m.turns.answered = m.remembered(t)
		m.link.tries.proved()
	}
	m.exactTurnOver(t, status == TurnCompleted)
	m.do(TurnEnded{Turn: t.number, Status: status, Usage: t.usage, Cost: t.cost, Latency: t.latency()})
}

// failTurn ends the open turn with an error. Until the user acts, the model keeps the budget of this turn.
func (m *turnControl) failTurn(f Failed) {
	t := m.turn
	m.checkClaims(t.number)
	m.turn = nil
	m.lastActive = m.at
	m.answers()
	m.exactTurnOver(t, false)
	f.Turn = t.number
	m.do(f, TurnEnded{Turn: t.number, Status: TurnFailed, Usage: t.usage, Cost: t.cost, Latency: t.latency()})
}

func (t *turn) interrupt(at time.Time) {
	if t.cut == uncut {
		t.cut, t.cutAt = cutByUser, at
	}
}

func (s State) abandonedAt() time.Time {
	t := s.turn
	if t == nil || t.cut != cutByUser || t.stage == done {
		return time.Time{}
	}
	return t.cutAt.Add(s.policy.NoAnswerAfter)
}

// unfinishedAt returns when a fully heard turn ends without the model's report; zero without one.
func unfinishedAt(s State) time.Time {
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
		since = latest(since, heard)
	}
	return since.Add(s.policy.NoAnswerAfter)
}

// unendedAt returns when an unfinished item counts as complete. While a tool runs, the model may continue it.
func (s State) unendedAt() time.Time {
	since, ok := s.line.openUntil()
	if !ok || s.turn != nil && s.calls.Owed(s.turn.number) {
		return time.Time{}
	}
	return latest(since, s.signAt, s.link.awayAt, s.workedUntil()).Add(s.policy.NoAnswerAfter)
}

// endItems completes items after a long silence, because the reports of their ends may be lost.
func (m *machine) endItems() {
	for _, it := range m.line.items {
		if ended, ok := m.line.end(it.id, it.sent.Milliseconds()); ok {
			m.do(EndItem{Item: ended.id, Turn: ended.turn, AudioMS: ended.audioMS})
		}
	}
	m.settleLine()
}

// overlookedAt is the deadline for ended, unanswered speech. Sound during an answer may be the loudspeaker.
func (s State) overlookedAt() time.Time {
	if !s.user.unanswered || s.user.speaks() || !s.caps.SpeechEvents || s.turn != nil || s.ending() || s.away() {
		return time.Time{}
	}
	return s.afterWork(s.user.known).Add(s.policy.NudgeAfter)
}

// underWay reports whether the turn's own response is under way. Earlier ones may never report their end.
func (s State) underWay() bool {
	return s.response.underWay && s.turn != nil && s.turn.response == s.response.id
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
	// Each part begins at the end of the previous part.
	return &Latency{
		Total: t.clientAt.Sub(end), Detection: t.knownAt.Sub(end),
		Provider: t.modelAt.Sub(t.knownAt), Gateway: t.clientAt.Sub(t.modelAt),
	}
}

// nothingSaid handles a model turn without an answer like an empty answer.
func (m *turnControl) nothingSaid() {
	t := m.turn
	if t == nil || t.stage == done || t.cut != uncut || t.nudge == nudgeSoon || m.response.underWay || m.user.speaks() ||
		m.calls.Owed(t.number) {
		return
	}
	m.missesSpeech(t)
}

// stopped reports whether the user can have stopped a broken answer. Otherwise the model is expected to continue.
func (m *turnControl) stopped(t *turn) bool {
	return t.spoke || t.calls > 0 || m.user.speaks() && m.user.spokenAt.After(t.startedAt)
}

// missesSpeech handles an answer without speech: the model is asked once more, then the turn fails.
func (m *turnControl) missesSpeech(t *turn) {
	switch {
	case t.spoke || t.cut != uncut || m.ending() && !t.modelAt.IsZero():
	case m.atWork() && t.nudge == nudged:
		t.stage = answering
	case t.nudge == nudged:
		m.failTurn(Failed{Failure: FailureNoAnswer, Retryable: true})
	default:
		t.waitOn(m.at)
	}
}

// waitOn waits for another response to the turn. The model is asked for it once.
func (t *turn) waitOn(at time.Time) {
	t.stage = answering
	if t.nudge != nudged {
		t.nudge, t.nudgeAt = nudgeSoon, at.Add(nudgeGrace)
	}
}

// nudgeGrace is how long a model may take to continue after an answer without speech, as some do after a tool's result.
const nudgeGrace = time.Second

func (m *turnControl) nudge(t *turn) {
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

func (in Used) take(m *machine) {
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

func speechOwedAt(s State) (at time.Time) {
	since := s.owedSince()
	if since.IsZero() {
		return at
	}
	if at = since.Add(s.policy.NoAnswerAfter); s.mayNudge() {
		at = sooner(at, since.Add(s.policy.NudgeAfter))
		if s.turn.nudge == nudgeSoon {
			at = sooner(at, s.afterWork(s.turn.nudgeAt))
		}
	}
	return sooner(at, s.turnFailsAt())
}

// speechOwed guarantees that every turn ends in speech or in an error.
func (m *machine) speechOwed() {
	since, mayNudge := m.owedSince(), m.mayNudge()
	if m.turn.nudge == nudgeSoon && !m.at.Before(m.afterWork(m.turn.nudgeAt)) && mayNudge {
		m.nudge(m.turn)
	}
	waited := m.at.Sub(since)
	if waited >= m.policy.NoAnswerAfter || m.overdue(m.turnFailsAt()) {
		m.failTurn(Failed{Failure: FailureNoAnswer, Retryable: true})
		return
	}
	if waited >= m.policy.NudgeAfter && mayNudge && m.turn.nudge != nudged {
		m.nudge(m.turn)
	}
}

func (m *turnControl) settleTurn() {
	m.settleLine()
	heard := !m.Audible(m.at)
	if m.ending() {
		heard = len(m.line.items) == 0 // the session closes with the turn: no item may still be playing
	}
	if t := m.turn; t != nil && t.stage == done && (t.cut != uncut || heard) {
		m.endTurn()
	}
}

func (m *turnControl) flush(reason FlushReason) (cutOff bool) {
	return m.flushThose(reason, func(item) bool { return true })
}

func (m *turnControl) flushThose(reason FlushReason, which func(item) bool) (cutOff bool) {
	m.settleLine()
	var kept []item
	for i, it := range m.line.items {
		if !which(it) {
			kept = append(kept, it)
			continue
		}
		c := cut{item: it.id, heardMS: m.line.heard(i, m.at), leastMS: it.playedMS, sentMS: it.sent.Milliseconds(),
			audioMS: -1, deadline: m.at.Add(reportWait), exact: it.exact}
		if it.ended {
			c.audioMS = it.audioMS
		}
		m.do(FlushItem{Item: it.id, Turn: it.turn, Reason: reason, HeardMS: c.heardMS, SentMS: c.sentMS})
		m.cuts = append(m.cuts, c)
		if !it.exact {
			m.cutWords(c, it.turn)
		}
		m.line.renote(it.id, func(it *SpokenItem) { it.Cut = true })
		cutOff = cutOff || m.Turn() == it.turn && !c.whole()
	}
	m.line.items = kept
	return cutOff
}

// userTurn returns the turn of an utterance known only by its transcript.
func (m *turnControl) userTurn() int {
	if m.turn != nil && !m.user.speaks() && !m.user.since.After(m.turn.startedAt) {
		return m.turn.number
	}
	return m.nextTurn()
}

// nextTurn returns the turn of the user's current words: the open one until the model begins to answer it.
func (m *turnControl) nextTurn() int {
	if t := m.turn; t != nil && t.modelAt.IsZero() && t.stage != done && t.cut == uncut && !m.exactSounds() {
		return t.number
	}
	return m.turns.last + 1 + m.turns.skip
}

// failedBy returns the client's error for a failure.
func failedBy(turn int, l Loss) Failed {
	row := l.Kind.Failure()
	return Failed{Turn: turn, Failure: Failure(row.Code), Retryable: row.Later, Kind: l.Kind, After: l.After}
}

// retryDue returns when a failed answer is retried; zero if none is. A user who speaks brings another answer instead.
func (s State) retryDue() time.Time {
	t := s.turn
	if t == nil || t.cut != uncut || t.stage != answering || s.down() || s.away() || s.user.speaks() ||
		s.user.spokenAt.After(t.startedAt) || s.response.underWay {
		return time.Time{}
	}
	return t.retryAt
}

// mayNudge reports whether the model may be asked again for the answer to the open turn.
func (s State) mayNudge() bool {
	return s.turn.nudge != nudged && !s.user.speaks() && s.turn.retryAt.IsZero()
}

func (m *machine) retry() {
	t := m.turn
	t.retryAt = time.Time{}
	m.supersede()
	if t.spoke {
		t.spoke, t.owedFrom = false, m.at
		m.sendNotice(prompts.GoOnAfterBreak)
		return
	}
	m.ask(t, LinkResumed)
}

// workPatience is how long a model counts as working after its last report, if it never reports the end.
const workPatience = 2 * time.Minute

// work is until when the model works, or worked, without sending an answer. It is immutable.
type work struct{ until time.Time }

// workedUntil returns that time; zero without any. Waits for the model begin then at the earliest.
func (s State) workedUntil() (at time.Time) {
	if s.work != nil {
		return s.work.until
	}
	return at
}

func (m *turnControl) atWork() bool { return m.at.Before(m.workedUntil()) }

func (s State) afterWork(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return latest(at, s.workedUntil())
}

func latest(a time.Time, more ...time.Time) time.Time {
	for _, b := range more {
		if b.After(a) {
			a = b
		}
	}
	return a
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// interaction handles the model's report of whether it is working. A silent answer ends with the work.
func (m *turnControl) interaction(ev transport.Interaction) {
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
	if t := m.turn; !ev.InProgress && t != nil && t.stage == answering && t.response != "" && t.response == m.response.id &&
		!m.response.underWay {
		t.stage = done
		m.missesSpeech(t)
	}
}

// answers records that the user's speech is answered, except speech that continues or has no turn yet.
func (m *turnControl) answers() {
	if s := &m.user.settled; m.turn != nil && s.owed && s.answered.turn != m.turn.number {
		s.answered = answeredSpeech{turn: m.turn.number, fromMS: s.wanted(s.from)}
	}
	m.user.settled.settle(!m.user.speaks() && !m.user.unanswered)
}
