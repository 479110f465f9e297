package orchestrator

import (
	"time"

	"voicegw/audit"
)

// notice is text that the model gets as a user's turn although the user has not typed it: the
// result of an approved action, the outcome of a question, or a tool's message.
type notice struct {
	turn  int    // the number of its turn, used while that is still open
	text  string // for the model
	shown bool   // the text is a tool's, not the gateway's: the client sees it as text of the user's side
	now   bool   // it does not wait for the end of a turn
	// record is the audit's record of the call that this notice answers; nil without one. It is
	// immutable.
	record *audit.Record
	job    string // the id of the job whose end this tells of; empty otherwise
}

// notify tells the model at once if the notice's turn still waits for it, or if the notice may
// interrupt; otherwise in the next turn. It reports whether the model will be told at all: a
// session that is ending has no next turn.
func (m *machine) notify(n notice) bool {
	t := m.turn
	switch {
	case m.phase == PhaseEnded, m.phase == PhaseEnding && m.down():
		return false
	case t != nil && t.number == n.turn && t.stage != done && !n.now && !m.user.speaks():
		t.owedFrom, t.spoke, t.owedBy = m.at, false, time.Time{}
		m.sendAnswer(n)
	case m.phase == PhaseEnding:
		return false
	case n.now && !m.user.speaks() && !m.away():
		m.interrupt(FlushUserAction)
		m.tell(n)
	case len(m.notices) < maxNotices:
		m.notices = append(m.notices, n)
	default:
		return false
	}
	return true
}

// tell opens a turn with a notice.
func (m *machine) tell(n notice) {
	m.openCausedTurn()
	if n.shown {
		m.say("pending_message", n.text)
		return
	}
	m.sendAnswer(n)
}

// sendAnswer sends a notice to the model, and audits the record that this makes true.
func (m *machine) sendAnswer(n notice) {
	if n.record != nil {
		if m.down() {
			m.link.waits(n.record)
		}
		m.do(Audit{Record: *n.record, Told: true})
	}
	if n.job != "" {
		m.do(JobTold{Job: n.job})
	}
	m.sendNotice(n.text)
}

// nothingMore audits, at the end of a session, the answers that were meant for a turn that will
// never come, and the calls that have not begun.
func (m *machine) nothingMore() {
	for _, n := range m.notices {
		if n.record != nil {
			r := *n.record
			r.Delivered, r.NotDelivered = false, sessionOver
			m.do(Audit{Record: r})
		}
	}
	m.notices = nil
	m.carryOut(m.calls.Over())
}
