package orchestrator

import (
	"time"

	"voicegw/internal/audit"
)

// notice is text that the model gets as a user's turn although the user has not typed it: the result of an approved
// action, the outcome of a confirmation, or a tool's message.
type notice struct {
	turn  int    // number of its turn, used while that is open
	text  string // for the model
	shown bool   // a tool wrote the text: the client shows it as the user's
	now   bool   // does not wait for the end of a turn
	// record is the audit record of the call that this notice answers; may be nil. It is immutable.
	record *audit.Record
	job    string // id of the job whose end this reports; may be empty
}

// notify sends a notice at once if its turn waits for it or if it may interrupt, otherwise with the next turn. It
// returns false if the session is ending and the model will never get it.
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

// sendAnswer sends a notice to the model and audits its record.
func (m *machine) sendAnswer(n notice) {
	if n.record != nil {
		m.do(Audit{Record: *n.record, Told: true})
	}
	if n.job != "" {
		m.do(JobTold{Job: n.job})
	}
	m.sendNotice(n.text)
}

// nothingMore audits, at the end of a session, the answers of turns that will never come and the calls that have not
// begun.
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
