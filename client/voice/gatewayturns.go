package voice

import "voicegw/protocol"

// gatewayTurns tracks the gateway's turns, by number.
type gatewayTurns struct {
	exchanges map[int]*Exchange // unless forgotten
	open      map[int]bool
	newest    int
	lastEnded int
}

// endsAgain reports whether a message repeats the end of a turn. A gateway repeats it after a takeover if it may not
// have arrived; its snapshot then opens the turn again.
func (t *gatewayTurns) endsAgain(m protocol.ServerMessage) bool {
	ended, ok := m.(*protocol.TurnEnded)
	if !ok {
		return false
	}
	if ended.Turn <= t.lastEnded {
		delete(t.open, ended.Turn)
		return true
	}
	t.lastEnded = ended.Turn
	return false
}
