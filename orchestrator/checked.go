package orchestrator

import (
	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry/spec"
)

// AnswerStopped reports that a check has stopped an answer: the session passes on nothing more of it. Item is the
// utterance.
type AnswerStopped struct{ checks.Stop }

// AnswerChecked reports that a check has stopped an answer, for the client.
type AnswerChecked struct {
	checks.Stop
	Turn int
}

// DropHeld drops all audio that the session holds back for its checks, because the user has interrupted.
type DropHeld struct{}

func (AnswerChecked) action() {}
func (DropHeld) action()      {}

// maxStops is how many answers in a row are stopped before a turn fails: the model may insist.
const maxStops = 2

// take cuts the answer off, and lets the model say the check's words or something else. A turn never ends in silence.
func (in AnswerStopped) take(m *machine) {
	m.settleTurn()
	turn, open := m.user.turnOf(in.Item, m.turns.last), m.turn != nil
	claims := m.heldClaims(in.Stop, turn)
	m.do(AnswerChecked{in.Stop, turn}, Audit{Record: audit.Stopped(m.at, spec.ModeVoice, turn, in.Rule.Name, string(in.Why))})
	if open && turn < m.turn.number && in.Rule.Outcome != checks.End {
		return // too late: another answer is under way
	}
	if m.ending() {
		m.breakOff(m.endReason())
		return
	}
	heard := open && (!m.turn.clientAt.IsZero() || m.turn.spoke && m.turn.modelAt.IsZero())
	if open {
		m.interrupt(FlushCheck)
		m.turn.cut = cutOff
	}
	m.refused++
	switch {
	case in.Rule.Outcome == checks.End:
		m.sayFarewell(EndChecked, prompts.EndNotice(in.Rule.Say))
	case !open: // the turn is over, and the user has heard it
		m.correct(turn, claims, false)
	case in.Rule.Outcome == checks.Cut && heard:
		m.correct(turn, claims, true)
		if m.turn.stopSent = m.underWay() && m.caps.Cancel; !m.response.underWay {
			m.turn.stage = done
			return
		}
		m.cancel()
	case m.refused > maxStops:
		if m.response.underWay {
			m.cancel()
		}
		m.failTurn(Failed{Failure: FailureChecked})
	case in.Rule.Outcome == checks.Replace:
		m.tell(notice{text: prompts.InsteadNotice(in.Rule.Say)})
	case len(claims) > 0:
		m.tell(notice{text: calls.ClaimNotice(claims, true), claims: claims})
	default:
		m.tell(notice{text: prompts.OtherwiseNotice})
	}
}
