package voice

import (
	"testing"

	"voicegw/protocol"
)

// TestRepeatedTurnEnd: after a takeover a gateway may repeat the end of a known turn; its usage must not count twice.
func TestRepeatedTurnEnd(t *testing.T) {
	var turns gatewayTurns
	for i, turn := range []int{1, 1, 2, 104, 104} {
		again := turns.endsAgain(&protocol.TurnEnded{Header: protocol.Header{Turn: turn}})
		if want := i == 1 || i == 4; again != want {
			t.Errorf("message %d, of turn %d: again is %t", i, turn, again)
		}
	}
	if turns.endsAgain(&protocol.TurnStarted{Header: protocol.Header{Turn: 1}}) {
		t.Error("a new turn counts as a repeated end")
	}
	turns.open = map[int]bool{104: true} // from a snapshot
	if !turns.endsAgain(&protocol.TurnEnded{Header: protocol.Header{Turn: 104}}) || len(turns.open) > 0 {
		t.Errorf("after the snapshot the turns %v are open", turns.open)
	}
}
