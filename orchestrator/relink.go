package orchestrator

import (
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

func (in LinkLost) take(m *machine) { m.linkLost(LinkBroken, Loss(in)) }

// linkLost handles the loss of the connection. If the connection had not proved itself, this is a failed attempt.
func (m *speechControl) linkLost(why LinkReason, f Loss) {
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
		m.do(Redial{After: try.After, Other: try.Other})
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
		m.failTurn(FailureNoAnswer, true) // the user's words are unknown
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
func (m *speechControl) proves() bool {
	l := &m.link
	if l.proof == unasked && !m.ending() && !m.user.speaks() && m.user.spokenAt.Before(l.awayAt) {
		m.linkLost(LinkUnanswered, Loss{Kind: transport.KindRetry})
		return false
	}
	l.proof, l.proofBy = proven, time.Time{}
	return true
}

func (s State) tellAwayAt() (at time.Time) {
	if !s.down() || s.link.told || s.ending() {
		return at
	}
	return s.link.lostAt.Add(linkSilent)
}

// unprovenAt returns when a resumed conversation that does not answer is closed; zero if none is awaited.
func (s State) unprovenAt() (at time.Time) {
	if s.down() || s.link.proof != asked || s.ending() || s.user.speaks() {
		return at
	}
	return s.link.proofBy
}
