package orchestrator

import (
	"slices"
	"time"

	"voicegw/audit"
	"voicegw/prompts"
	"voicegw/transport"
)

// LinkReason is why the connection to the model is replaced.
type LinkReason string

// The reasons.
const (
	LinkExpired    LinkReason = "expiring"     // it would soon end by itself
	LinkBroken     LinkReason = "lost"         // it has ended
	LinkUnanswered LinkReason = "unanswered"   // the resumed conversation does not go on
	LinkMoving     LinkReason = "moving"       // the session was to be given to another process
	LinkAgent      LinkReason = "agent_switch" // another agent goes on, and the model takes that on a new connection only
)

// LinkHow is what the model knows of the conversation on its new connection.
type LinkHow string

// The values of LinkHow.
const (
	LinkResumed  LinkHow = "resumed"  // the provider remembers it
	LinkReplayed LinkHow = "replayed" // the provider was told it again
	LinkFresh    LinkHow = "fresh"    // it knows nothing
)

const (
	// linkPatience is how long a row of attempts may take until a connection has proved itself, and a
	// turn that a connection has cut off be unanswered. Then the session, or the turn, ends with an error.
	linkPatience = 30 * time.Second
	// linkSilent is how long a connection may be away before the client is told.
	linkSilent = 500 * time.Millisecond
	// handlePatience is how long a planned replacement waits at a quiet moment for a handle that
	// knows all that was said.
	handlePatience = 5 * time.Second
	// lateTime is how long before the last possible moment a planned replacement waits only for the
	// end of what the model is saying, and no longer until the user has heard it. For a provider that
	// gives little time, a quarter of that time counts instead.
	lateTime = 25 * time.Second
	// proofPatience is how long a resumed conversation may take to answer the user's first words.
	// Resumed conversations that transcribe the user and never answer were seen (voiceclaw PR 255).
	proofPatience = 8 * time.Second
)

// link is what the State keeps about the connection to the model.
type link struct {
	lostAt time.Time // when the connection was lost; zero while it is open
	awayAt time.Time // when the one before was given up; zero for the first
	reason LinkReason
	count  int // connections that were given up so far

	from, by time.Time // a replacement is due at a quiet moment after from, and at by; by is zero if none is planned
	quietAt  time.Time // since when a quiet moment waits for a handle
	seen     time.Time // the time of the last step
	handle   string

	told     bool // the client knows that the connection is away
	deferred bool // a call was under way when the replacement was due
	fresh    bool // nothing has happened since handle came

	// draft is what the model is saying, as the client was told last; without an ID if all words are known.
	draft Transcript

	tries Attempts
	kind  transport.Kind // of the last failure

	// unsent are the audit's records of the latest answers that wait for the next connection, immutable ones.
	unsent []*audit.Record

	// What the connection that was given up has left behind.
	pressed bool // the user was holding the push-to-talk button
	midway  bool // the user was speaking
	speech  bool // the user had said something for which no turn has begun

	proof   proof
	proofBy time.Time // when a resumed conversation has failed its proof; zero before the user's first words
}

// proof is whether a resumed conversation has shown that it goes on.
type proof uint8

const (
	proven  proof = iota // or not needed
	unasked              // nobody has said anything to the model since it was resumed
	asked                // the model has something to answer
)

// maxUnsent bounds link.unsent: they are part of each checkpoint.
const maxUnsent = 16

// waits notes the record of an answer that waits for the next connection.
func (l *link) waits(r *audit.Record) {
	if len(l.unsent) == maxUnsent {
		l.unsent = slices.Delete(l.unsent, 0, 1)
	}
	l.unsent = append(l.unsent, r)
}

// down reports whether there is no connection to the model.
func (s State) down() bool { return !s.link.lostAt.IsZero() }

// replaceable reports whether a new connection could go on with the conversation.
func (s State) replaceable() bool { return s.policy.Relink && Replaceable(s.caps) }

// Replaceable reports whether a session with such a model replaces its connection. With any other
// model the session ends when its connection does.
func Replaceable(caps transport.Capabilities) bool {
	return caps.Resume || caps.History != transport.HistoryNone
}

// clone returns a copy that shares nothing that Step changes.
func (l link) clone() link {
	l.unsent = slices.Clone(l.unsent)
	return l
}

// ofLink takes an input about the connection to the model.
func (m *machine) ofLink(in Input) {
	switch in := in.(type) {
	case LinkExpiring:
		if m.replaceable() && !m.down() {
			m.expiring(in.From, in.By)
		}
	case Move:
		m.moveBy(in.By)
	case LinkLost:
		m.linkLost(LinkBroken, Loss{Kind: in.Kind, After: in.After})
	case LinkBack:
		m.linkBack(in)
	case LinkFailed:
		m.linkFailed(Loss{Kind: in.Kind, After: in.After})
	}
}

// expiring plans a replacement, unless one is planned that comes earlier.
func (m *machine) expiring(from, by time.Time) {
	if l := &m.link; l.by.IsZero() || by.Before(l.by) {
		l.from, l.by = from, by
	}
}

// goAway takes the provider's notice. Some give no time at all, and some close earlier than they
// said: the replacement comes a third of the time before, but at least 4 s and at most 15 s.
func (m *machine) goAway(left time.Duration) {
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
	m.expiring(from, by)
}

// changed records that something has happened which an older handle does not know.
func (m *machine) changed() { m.link.fresh = false }

// lateAt returns from when a planned replacement no longer waits for a quiet moment, but only until
// the model is idle.
func (l link) lateAt() time.Time {
	return l.by.Add(-min(lateTime, max(l.by.Sub(l.from)/4, 0)))
}

// rotate gives the session up, or replaces a connection that will soon end: at the first quiet
// moment; later as soon as the model is idle; at the latest at the last possible moment.
func (m *machine) rotate() {
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

// unlinkPlanned replaces a connection that works. It takes from the same budget as a loss.
func (m *machine) unlinkPlanned(why LinkReason) {
	wait := min(max(m.link.tries.due(m.at).Sub(m.at), 0), longestPause)
	m.link.tries.Planned(m.at)
	m.unlink(why, Attempt{After: wait})
}

// awaitsHandle reports whether a replacement at this quiet moment should wait for a handle that
// knows all that was said.
func (m *machine) awaitsHandle() bool {
	l := &m.link
	if !m.caps.Resume || l.fresh {
		return false
	}
	if l.quietAt.IsZero() {
		l.quietAt = m.at
	}
	return m.at.Before(l.quietAt.Add(handlePatience))
}

// quiet reports whether nobody would notice that the connection is replaced.
func (m *machine) quiet() bool {
	return m.idle() && m.turn == nil && !m.at.Before(m.user.quietAt) && !m.Audible(m.at) && len(m.notices) == 0
}

// idle reports whether the model owes nothing and is told nothing: with the connection only the
// report would be lost of how much the user has heard of an answer that still sounds.
func (m *machine) idle() bool {
	return (m.turn == nil || m.turn.stage == done) && !m.response.underWay() && !m.atWork() && !m.user.speaks() && !m.user.unanswered &&
		len(m.cuts) == 0 && m.calls.UnderWay() == 0
}

// linkLost takes the loss of the connection. A connection that breaks before it has proved itself is a
// failed attempt.
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

// linkFailed takes a failed attempt to open a connection.
func (m *machine) linkFailed(f Loss) {
	if !m.down() || m.phase == PhaseEnded {
		return
	}
	f.Other = m.policy.Failover
	m.link.kind = f.Kind
	if try := m.link.tries.Lost(m.at, f); try.Over {
		m.breakOff(EndLost)
	} else {
		m.do(Redial{After: try.After, Other: try.Other})
	}
}

// LastAttempt reports whether no attempt follows if the present one fails for that reason.
func (s State) LastAttempt(at time.Time, f Loss) bool {
	f.Other = s.policy.Failover
	return s.link.tries.Lost(at, f).Over // a copy: s does not change
}

// unlink gives the connection up, and asks for another one as try says. What the model has said still sounds;
// what it has not said is asked for again on the next connection.
func (m *machine) unlink(why LinkReason, try Attempt) {
	l := &m.link
	calls, deferred := m.calls.UnderWay(), l.deferred
	handle := ""
	if l.fresh && m.caps.Resume && why != LinkUnanswered && m.calls.Awaited() == 0 {
		handle = l.handle
	}
	m.noMoreWords()
	m.switching.confirmBy = time.Time{} // it will not come
	*l = link{lostAt: m.at, awayAt: m.at, reason: why, count: l.count + 1, seen: l.seen, tries: l.tries, kind: l.kind, unsent: l.unsent, pressed: m.user.voice == pressing, midway: m.user.speaks(), speech: m.user.unanswered}
	m.user.unanswered, m.stop.pending = false, false
	if why == LinkMoving {
		m.goOnSpeaking(false) // what is kept stays in this process
	}
	m.cuts, m.response, m.work = nil, response{}, nil
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
			m.endTurn() // nobody goes on with it
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

// noMoreWords tells the client that what the model was saying has no further words: on another connection
// it goes on as another item.
func (m *machine) noMoreWords() {
	if d := m.link.draft; d.ID != "" && !m.suppressed.transcript {
		d.Final = true
		m.do(d)
	}
}

// tellAway tells the client that the connection is away.
func (m *machine) tellAway() {
	m.link.told = true
	m.do(Reconnecting{Reason: m.link.reason})
}

// linkBack goes on with a new connection. Commands that this step sends come before everything that
// was said while there was none.
func (m *machine) linkBack(in LinkBack) {
	l := &m.link
	if !m.down() || m.phase == PhaseEnded {
		return
	}
	m.caps = in.Caps
	l.tries.open(m.at)
	away := m.at.Sub(l.lostAt)
	l.lostAt, l.unsent = time.Time{}, nil
	if l.told {
		m.do(Reconnected{Reason: l.reason, Lost: away, How: in.How})
	}
	if l.proof = proven; in.How == LinkResumed {
		l.proof = unasked
	}
	m.response, m.stop.pending, m.signAt = response{}, false, m.at
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

// goOnSpeaking lets the new connection hear what the user was saying when the one before was lost.
// If that was not kept, a model that reports speech has heard nothing, and the user must begin anew.
func (m *machine) goOnSpeaking(kept bool) {
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

// sayAgain sends what the user has said to the new connection.
func (m *machine) sayAgain() {
	m.asked()
	m.do(SayAgain{Over: !m.link.midway})
}

// askAgain asks for the answer that the user is waiting for.
func (m *machine) askAgain(in LinkBack) {
	t, how := m.turn, in.How
	switch {
	case t == nil || t.stage == done || t.cut != uncut:
		m.askForSpeech(in)
		return
	case t.queued == m.link.count, m.calls.Owed(t.number):
		// What the user said goes to the new connection, or a result that opens the answer will.
	case t.spoke && (how == LinkResumed || m.user.speaks()):
		t.stage = done // the provider believes that everything was said, or the user goes on
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
		m.failTurn(FailureNoAnswer, true) // nobody knows what the user said
		return
	}
	t.owedFrom, t.nudge, t.owedBy = m.at, nudgeLater, m.link.awayAt.Add(linkPatience)
}

// ask asks for the answer of a turn on a new connection: the user's request is repeated as it was. A model
// that answers only when it is asked to finds it in the conversation that it was told.
func (m *machine) ask(t *turn, how LinkHow) {
	m.asked()
	words := m.user.wording.of(t.number)
	switch {
	case m.caps.RespondNeeded && (how != LinkFresh || words == ""):
		m.respond(t)
	case words != "":
		m.sendText(m.repeats(t, m.mark.Foreign(words)))
	default:
		m.sendText(m.marked(m.mayCall(t, prompts.NudgeNotice)))
	}
}

// repeats returns what a new connection is told of a request whose answer is not complete.
func (m *machine) repeats(t *turn, request string) string {
	var before []string
	if t.given {
		before = append(before, prompts.ResultsBefore)
	}
	if before = m.mayCall(t, before...); len(before) == 0 {
		return request
	}
	return m.marked(before) + "\n" + request
}

// mayCall adds to a request for an answer that the model must call no more tools, if the turn's budget
// is used up and nothing else tells the model.
func (m *machine) mayCall(t *turn, words ...string) []string {
	if t.toolsOff && !m.caps.ToolsOff {
		words = append(words, prompts.WithoutTools)
	}
	return words
}

// askForSpeech asks for the answer to speech for which no turn had begun. Where neither its words nor
// its audio are known, the user must say it again.
func (m *machine) askForSpeech(in LinkBack) {
	kept, how := in.Kept, in.How
	switch {
	case m.user.speaks():
	case !m.link.speech:
		if kept && m.user.settled.owed { // the client has said again what no model has taken notice of
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

// asked records that a resumed conversation has something to answer.
func (m *machine) asked() {
	if l := &m.link; l.proof != proven && !m.down() {
		l.proof, l.proofBy = asked, m.at.Add(proofPatience)
	}
}

// proves takes a sign that the model answers, and reports whether the step must go on with it. A
// resumed conversation that speaks before anybody has said anything has forgotten what was said,
// and greets.
func (m *machine) proves() bool {
	l := &m.link
	if l.proof == unasked && !m.ending() && !m.user.speaks() && m.user.spokenAt.Before(l.awayAt) {
		m.linkLost(LinkUnanswered, Loss{Kind: transport.KindRetry})
		return false
	}
	l.proof, l.proofBy = proven, time.Time{}
	return true
}

// watchLink tells the client of a connection that is away for long, and gives up a resumed
// conversation that does not answer.
func (m *machine) watchLink() {
	l := &m.link
	switch {
	case m.down():
		if !l.told && !m.ending() && !m.at.Before(l.lostAt.Add(linkSilent)) {
			m.tellAway()
		}
	case l.proof == asked && !m.ending() && !m.user.speaks() && !m.at.Before(l.proofBy):
		m.linkLost(LinkUnanswered, Loss{Kind: transport.KindRetry})
	}
}

// linkDue calls sooner with each time at which something about the connection falls due.
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
	switch {
	case s.down():
		if !l.told && !s.ending() {
			sooner(l.lostAt.Add(linkSilent))
		}
		return
	case l.proof == asked && !s.ending() && !s.user.speaks():
		sooner(l.proofBy)
	}
	if !active || l.by.IsZero() && !s.moves() && s.switching.next == nil {
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
