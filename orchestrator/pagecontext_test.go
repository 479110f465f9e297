package orchestrator

import (
	"fmt"
	"testing"

	"voicegw/transport"
)

// TestWaitingContextIsBounded: a checkpoint of another version of the program may hold more texts of a page than may
// wait here.
func TestWaitingContextIsBounded(t *testing.T) {
	var was Memory
	for i := range 2 * maxContexts {
		was.Contexts = append(was.Contexts, fmt.Sprint("order ", i))
	}
	caps := transport.Capabilities{AddItem: transport.AddItemIdle}
	s, _ := Step(NewState(caps, NewRules(Policy{}), toolbox(), testMark, epoch), epoch, Restored{Memory: was, StartedAt: epoch, Epoch: 2})
	if n := len(s.contexts); n != maxContexts || s.contexts[0].Text != "order 0" {
		t.Errorf("%d texts wait, the first is %v", n, s.contexts)
	}
}
