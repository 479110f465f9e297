package orchestrator

import (
	"slices"
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// LinkReason is the reason for replacing the connection to the model.
type LinkReason string

// LinkHow is the model's knowledge on its new connection.
type LinkHow string

type link struct {
	lostAt time.Time // when the connection was lost; zero while it is open
	awayAt time.Time // when the previous connection was closed; zero for the first
	reason LinkReason
	count  int // connections closed so far

	from, by time.Time // a replacement is due at a quiet moment after from, at the latest at by; by is zero if none is planned
	quietAt  time.Time // since when a quiet moment waits for a handle
	seen     time.Time // time of the last step
	handle   string

	told     bool // the client knows of the loss
	deferred bool // a call was open when the replacement was due
	fresh    bool // handle is up to date

	draft Transcript // the model's utterance as last sent to the client; without an ID if it is complete

	tries Attempts
	kind  transport.Kind // of the last failure

	// State left by the closed connection.
	pressed bool // the push-to-talk button was held
	midway  bool // the user was speaking
	speech  bool // the user had spoken and no turn had begun

	proof   proof
	proofBy time.Time // deadline for the answer of a resumed conversation; zero before the user's first words
}

// proof says whether a resumed conversation has shown that it continues.
type proof uint8

func (s State) down() bool { return !s.link.lostAt.IsZero() }

func (s State) replaceable() bool { return s.policy.Relink && Replaceable(s.caps) }

// Replaceable reports whether a session with such a model can replace its connection instead of ending with it.
func Replaceable(caps transport.Capabilities) bool {
	return caps.Resume || caps.History != transport.HistoryNone
}

func (l *link) expiring(from, by time.Time) {
	if l.by.IsZero() || by.Before(l.by) {
		l.from, l.by = from, by
	}
}

// goAway plans a replacement after the provider's notice: some time before the end, because some providers close early.
func (m *callControl) goAway(left time.Duration) {
	if !m.replaceable() {
		m.do(Ending{Reason: EndProvider, After: left})
		return
	}
	spare := min(max(left/3, 4*time.Second), 15*time.Second)
	from, by := m.at, m.at
	if left > 6*time.Second {
		by = m.at.Add(left - spare)
	}
	if m.link.tries.row(m.at) {
		// A provider that gives every new connection the same time would otherwise get one connection
		// after the other.
		from = m.at.Add(by.Sub(m.at) * 3 / 4)
	}
	m.link.expiring(from, by)
}

func (in LinkExpiring) take(m *machine) {
	if m.replaceable() && !m.down() {
		m.link.expiring(in.From, in.By)
	}
}

func (l *link) changed() { l.fresh = false }

func (l link) lateAt() time.Time { return l.by.Add(-min(lateTime, max(l.by.Sub(l.from)/4, 0))) }

// rotate moves the session, or replaces an expiring connection: at a quiet moment, when the model is idle, or at the
// deadline.
func (m *callControl) rotate() {
	l := &m.link
	l.seen = m.at
	if m.phase != PhaseActive {
		return
	}
	if m.leaves() {
		m.leave()
		return
	}
	if l.by.IsZero() || m.down() {
		return
	}
	switch {
	case !m.at.Before(l.by):
	case m.moves():
		return // the quiet moment is for that, and quietAt with it
	case m.at.Before(l.from) || !m.quiet() && (m.at.Before(l.lateAt()) || !m.idle()):
		l.quietAt = time.Time{}
		l.deferred = l.deferred || !m.at.Before(l.from) && m.calls.UnderWay() > 0
		return
	case m.awaitsHandle():
		return
	}
	if m.at.Before(l.tries.due(m.at)) {
		return // the connection is used for as long as it lasts
	}
	m.unlink(LinkExpired, l.tries.replace(m.at, m.policy.Failover))
}

// unlinkPlanned replaces a working connection. It draws on the budget of attempts.
func (m *callControl) unlinkPlanned(why LinkReason) {
	wait := min(max(m.link.tries.due(m.at).Sub(m.at), 0), longestPause)
	m.link.tries.Planned(m.at)
	m.unlink(why, Attempt{After: wait})
}

// awaitsHandle reports whether a replacement at this quiet moment should wait for an up-to-date handle.
func (m *callControl) awaitsHandle() bool {
	l := &m.link
	if !m.caps.Resume || l.fresh {
		return false
	}
	if l.quietAt.IsZero() {
		l.quietAt = m.at
	}
	return m.at.Before(l.quietAt.Add(handlePatience))
}

func (m *callControl) quiet() bool {
	return m.idle() && m.turn == nil && !m.at.Before(m.user.quietAt) && !m.Audible(m.at) && len(m.notices) == 0 && m.sayings.first() == nil
}

// idle reports whether the model owes nothing. A replacement then loses only the report of how much was heard.
func (m *callControl) idle() bool {
	return (m.turn == nil || m.turn.stage == done) && !m.response.underWay && !m.atWork() && !m.user.speaks() && !m.user.unanswered &&
		len(m.cuts) == 0 && m.calls.UnderWay() == 0
}

// LastAttempt reports whether no attempt would follow if the current one failed with this kind.
func (s State) LastAttempt(at time.Time, f Loss) bool {
	f.Other = s.policy.Failover
	return s.link.tries.Lost(at, f).Over // a copy: s does not change
}

// unlink closes the connection and asks for another one. Its words so far still play; the next one is asked for the
// rest.
func (m *callControl) unlink(why LinkReason, try Attempt) {
	l := &m.link
	calls, deferred := m.calls.UnderWay(), l.deferred
	handle := ""
	if l.fresh && m.caps.Resume && why != LinkUnanswered && m.calls.Awaited() == 0 {
		handle = l.handle
	}
	m.noMoreWords()
	m.switching.confirmBy = time.Time{} // it will not come
	*l = link{lostAt: m.at, awayAt: m.at, reason: why, count: l.count + 1, seen: l.seen, tries: l.tries, kind: l.kind,
		pressed: m.user.voice == pressing, midway: m.user.speaks(), speech: m.user.unanswered}
	m.user.unanswered, m.stop.pending = false, false
	if why == LinkMoving {
		m.goOnSpeaking(false) // kept audio stays in this process
	}
	m.cuts = slices.DeleteFunc(m.cuts, func(c cut) bool { return !c.exact })
	m.response, m.work = response{}, nil
	m.calls.Unlinked()
	if t := m.turn; t != nil && t.stage != done {
		t.response, t.calls, t.stage, t.retryAt = "", 0, answering, time.Time{}
		if t.cut != uncut {
			t.stage = done
		}
	}
	if m.ending() {
		return // no answer follows the farewell; endsAt ends the session
	}
	if why == LinkMoving {
		if t := m.turn; t != nil && t.cut != uncut {
			m.endTurn() // no process continues it
		}
		m.do(Moving{Handle: handle})
		return
	}
	m.do(SwitchLink{Reason: why, Handle: handle, Calls: calls, Deferred: deferred, After: try.After, Other: try.Other})
	if why != LinkExpired && (l.speech || m.turn != nil && m.turn.stage != done) {
		m.tellAway()
	}
	m.settleTurn()
}

func (m *callControl) noMoreWords() {
	if d := m.link.draft; d.ID != "" && !m.suppressed.transcript {
		d.Final = true
		m.do(d)
		m.noteWords(d)
	}
}

func (m *callControl) tellAway() {
	m.link.told = true
	m.do(Reconnecting{Reason: m.link.reason})
}

// goOnSpeaking replays speech that was cut off by the loss. If it was not kept, the user must start again.
func (m *callControl) goOnSpeaking(kept bool) {
	switch {
	case kept:
		m.sayAgain()
	case m.user.voice == speaking && m.caps.SpeechEvents:
		m.link.speech = true
		m.speechOver(m.at, true)
		m.user.quietAt = m.at
		m.do(SpeechStopped{Turn: m.nextTurn(), AudioMS: m.user.earMS, EndMS: -1})
	}
}

func (m *callControl) sayAgain() {
	m.asked()
	m.do(SayAgain{Over: !m.link.midway})
}

func (s State) linkDue(sooner func(time.Time)) {
	l := s.link
	later := func(t time.Time) {
		if t.After(l.seen) {
			sooner(t)
		}
	}
	active := s.phase == PhaseActive
	if active {
		sooner(s.move.by)
	}
	if !active || s.down() || l.by.IsZero() && !s.moves() && s.switching.next == nil {
		return
	}
	ready := l.tries.due(l.seen)
	if by := l.by; !by.IsZero() {
		if by.Before(ready) {
			by = ready
		}
		sooner(by)
	}
	later(ready)
	later(l.from)
	later(l.lateAt())
	if s.moves() || s.switching.next != nil || !l.seen.Before(l.from) {
		later(s.user.quietAt)
		later(s.workedUntil())
		later(s.line.lastAt(false))
		if !l.quietAt.IsZero() {
			later(l.quietAt.Add(handlePatience))
		}
	}
}

// Move asks the session to leave this process: when that goes unnoticed, and at By in any case. Without a client it
// leaves at once, unless a call runs. A session stays if it is ending or cannot replace its connection.
type Move struct{ By time.Time }

// Moving hands the session off. The connection is closed as by SwitchLink. If another process takes the session, it
// ends here; otherwise LinkBack or LinkFailed reports the result of a new connection.
type Moving struct{ Handle string }

func (Moving) action() {}

type move struct {
	by time.Time // when the session leaves in any case; zero if it stays
}

// moves reports whether the session will leave this process.
func (s State) moves() bool { return !s.move.by.IsZero() }

// leaving reports whether the session was handed off and may be gone.
func (s State) leaving() bool { return s.down() && s.link.reason == LinkMoving }

func (in Move) take(m *machine) {
	if m.replaceable() {
		m.move.by = in.By
	}
}

func (m *callControl) leaves() bool {
	switch {
	case !m.moves():
		return false
	case !m.at.Before(m.move.by):
		return true
	case m.away():
		return m.calls.UnderWay() == 0 && !m.atWork()
	case m.down() || !m.quiet():
		m.link.quietAt = time.Time{}
		return false
	}
	return !m.awaitsHandle()
}

func (m *callControl) leave() {
	m.move = move{}
	if m.down() {
		m.do(Moving{})
		return
	}
	m.unlink(LinkMoving, Attempt{})
}

// speechOver records the end of the user's speech, whatever ended it: a turn's latency uses both times. unsure means
// that the last sound came some time before endAt.
func (m *callControl) speechOver(endAt time.Time, unsure bool) {
	if unsure && m.user.heardEnd() {
		endAt, unsure = m.user.quiet, false
	}
	m.user.voice, m.user.since, m.user.known, m.user.unsure = silent, endAt, m.at, unsure
	if l := &m.link; l.proof == asked { // the model has time to prove itself from now on
		l.proofBy = m.at.Add(proofPatience)
	}
}

// Values of LinkReason.
const (
	LinkExpired    LinkReason = "expiring"     // it was about to end
	LinkBroken     LinkReason = "lost"         // it ended
	LinkUnanswered LinkReason = "unanswered"   // the resumed conversation does not answer
	LinkMoving     LinkReason = "moving"       // the session was to move to another process
	LinkAgent      LinkReason = "agent_switch" // another agent takes over and needs a new connection
	LinkTaken      LinkReason = "taken_over"   // another process has run the session
	LinkFailing    LinkReason = "failing"      // the model's answers fail, and the other provider takes over
)

// Values of LinkHow.
const (
	LinkResumed  LinkHow = "resumed"  // the provider remembers the conversation
	LinkReplayed LinkHow = "replayed" // the history was replayed
	LinkFresh    LinkHow = "fresh"    // nothing
)

const (
	// linkPatience limits a row of attempts, and the wait of a turn that a lost connection has interrupted. Then the
	// session, or the turn, ends with an error.
	linkPatience   = 30 * time.Second
	linkSilent     = 500 * time.Millisecond // how long a connection may be lost without the client's knowledge
	handlePatience = 5 * time.Second        // how long a planned replacement waits for an up-to-date resume handle
	// lateTime before the deadline of a planned replacement, it no longer waits until the user has heard the answer,
	// only until the model has finished. For a provider that gives little notice, a quarter of the notice counts
	// instead.
	lateTime = 25 * time.Second
	// proofPatience is how long a resumed conversation may take to answer the user's first words. Some resumed
	// conversations transcribe and never answer (voiceclaw PR 255).
	proofPatience = 8 * time.Second
)

const (
	proven  proof = iota // or not needed
	unasked              // nothing has been said since it was resumed
	asked                // the model has something to answer
)

func (in LinkLost) take(m *machine) { m.linkLost(LinkBroken, Loss(in)) }

// linkLost handles the loss of the connection. If the connection had not proved itself, this is a failed attempt.
func (m *machine) linkLost(why LinkReason, f Loss) {
	if m.down() || m.phase == PhaseEnded {
		return
	}
	m.link.kind = f.Kind
	if !m.replaceable() {
		m.breakOff(EndLost)
		return
	}
	f.Other = m.policy.Failover
	try := m.link.tries.Lost(m.at, f)
	if try.Over && !m.ending() {
		m.breakOff(EndLost)
		return
	}
	m.unlink(why, try)
}

func (in LinkFailed) take(m *machine) {
	f := Loss(in)
	if !m.down() || m.phase == PhaseEnded {
		return
	}
	f.Other = m.policy.Failover
	m.link.kind = f.Kind
	if try := m.link.tries.Lost(m.at, f); try.Over {
		m.breakOff(EndLost)
	} else {
		m.do(Redial(try))
	}
}

// take continues on a new connection. The commands of this step precede everything said during the loss.
func (in LinkBack) take(m *machine) {
	l := &m.link
	if !m.down() || m.phase == PhaseEnded {
		return
	}
	m.caps = in.Caps
	l.tries.open(m.at)
	away := m.at.Sub(l.lostAt)
	l.lostAt = time.Time{}
	if l.told {
		m.do(Reconnected{Reason: l.reason, Lost: away, How: in.How})
	}
	if l.proof = proven; in.How == LinkResumed {
		l.proof = unasked
	}
	m.response, m.stop.pending, m.signAt = response{}, false, m.at
	if in.How == LinkReplayed { // the history has them
		m.page = &page{slices.DeleteFunc(slices.Clone(m.contexts), func(c UserContext) bool { return c.exact }), m.resultAt, m.sayings}
	}
	m.giveAnew()
	if l.pressed {
		m.send(transport.ActivityStart{})
	}
	if l.midway {
		m.goOnSpeaking(in.Kept)
	}
	m.askAgain(in)
	l.pressed, l.midway, l.speech = false, false, false
}

func (m *machine) askAgain(in LinkBack) {
	t, how := m.turn, in.How
	switch {
	case t == nil || t.stage == done || t.cut != uncut:
		m.askForSpeech(in)
		return
	case t.queued == m.link.count, m.calls.Owed(t.number):
		// The user's words, or a result that opens the answer, go to the new connection.
	case t.spoke && (how == LinkResumed || m.user.speaks()):
		t.stage = done // the provider considers everything said, or the user continues
	case m.user.speaks():
		// Their speech will bring the answer.
	case t.spoke:
		t.spoke = false
		m.sendText(m.marked(m.mayCall(t, prompts.GoOnAfterBreak)))
	case t.told != "":
		m.sendText(m.repeats(t, t.told))
	case how == LinkResumed || m.user.worded >= t.number:
		m.ask(t, how)
	case in.Kept:
		m.sayAgain()
	default:
		m.failTurn(Failed{Failure: FailureNoAnswer, Retryable: true}) // the user's words are unknown
		return
	}
	t.owedFrom, t.nudge, t.owedBy = m.at, nudgeLater, m.link.awayAt.Add(linkPatience)
}

// askForSpeech asks for the answer to speech without a turn. If it is not known, the user must repeat it.
func (m *machine) askForSpeech(in LinkBack) {
	kept, how := in.Kept, in.How
	switch {
	case m.user.speaks():
	case !m.link.speech:
		if kept && m.user.settled.owed { // the client has resent speech that no model has noticed
			m.do(SayAgain{})
		}
	case m.user.worded > m.turns.last:
		m.openSpokenTurn()
		m.ask(m.turn, how)
		m.turn.owedFrom = m.at
	case kept:
		m.openSpokenTurn()
		m.sayAgain()
		m.turn.owedFrom, m.turn.owedBy = m.at, m.link.awayAt.Add(linkPatience)
	default:
		m.answers()
		m.do(Failed{Turn: m.nextTurn(), Failure: FailureNoAnswer, Retryable: true})
	}
}

// proves handles a sign that the model answers. A resumed conversation that speaks unasked has lost its memory and
// greets.
func (m *machine) proves() bool {
	l := &m.link
	if l.proof == unasked && !m.ending() && !m.user.speaks() && m.user.spokenAt.Before(l.awayAt) {
		m.linkLost(LinkUnanswered, Loss{Kind: transport.KindRetry})
		return false
	}
	l.proof, l.proofBy = proven, time.Time{}
	return true
}

func tellAwayAt(s State) (at time.Time) {
	if !s.down() || s.link.told || s.ending() {
		return at
	}
	return s.link.lostAt.Add(linkSilent)
}

// unprovenAt returns when a resumed conversation that does not answer is closed; zero if none is awaited.
func unprovenAt(s State) (at time.Time) {
	if s.down() || s.link.proof != asked || s.ending() || s.user.speaks() {
		return at
	}
	return s.link.proofBy
}
