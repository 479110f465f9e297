package orchestrator

import "voicegw/audit"

// notice is text that the model gets as a user's turn although the user has not typed
// it: the result of an approved action, what became of a question, a tool's message.
type notice struct {
	turn  int    // the turn it belongs to, if that is still open
	text  string // for the model
	shown bool   // a tool's words and not the gateway's: the client sees them as text of the user's side
	now   bool   // it does not wait for the end of a turn
	// record is the audit's of the call whose answer this is; nil for none. Nobody changes it.
	record *audit.Record
}

// notify tells the model at once where the turn it belongs to still waits, or where it
// may interrupt; else in the next turn. It says whether the model is told at all: a
// session that ends has no next turn.
func (m *machine) notify(n notice) bool {
	t := m.turn
	switch {
	case m.phase == PhaseEnded:
		return false
	case t != nil && t.number == n.turn && t.stage != done && !n.now && !m.user.speaks():
		t.owedFrom, t.spoke = m.at, false
		m.sendAnswer(n)
	case m.phase == PhaseEnding:
		return false
	case n.now && !m.user.speaks():
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

// sendAnswer gives the model a notice, and the audit the record that it makes true.
func (m *machine) sendAnswer(n notice) {
	if n.record != nil {
		m.do(Audit{Record: *n.record, Told: true})
	}
	m.sendNotice(n.text)
}

// nothingMore audits, at the end of a session, the answers that the model was to be told in
// a turn that never comes, and the calls that were to begin.
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
