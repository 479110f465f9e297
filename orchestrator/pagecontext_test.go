package orchestrator

import (
	"fmt"
	"testing"

	"voicegw/transport"
)

// TestWaitingContextIsBounded: a checkpoint of another version of the program may hold more texts of a page than this
// one allows.
func TestWaitingContextIsBounded(t *testing.T) {
	var old Memory
	for i := range 2 * maxContexts {
		old.Contexts = append(old.Contexts, fmt.Sprint("order ", i))
	}
	caps := transport.Capabilities{AddItem: transport.AddItemIdle}
	s, _ := Step(NewState(caps, NewRules(Policy{}), toolbox(), testMark, epoch), epoch, Restored{Memory: old, StartedAt: epoch, Epoch: 2})
	if n := len(s.contexts); n != maxContexts || s.contexts[0].Text != "order 0" {
		t.Errorf("%d texts wait, the first is %v", n, s.contexts)
	}
}
