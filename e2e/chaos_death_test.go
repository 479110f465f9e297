package e2e

import (
	"runtime"
	"sync"
	"testing"
)

// TestDeathWaitsForWhatWasBegun: a gateway dies while it does something, which does something more and
// does not wait for the death. The death waits until it is done; after that nothing more is.
func TestDeathWaitsForWhatWasBegun(t *testing.T) {
	n := &chaosNode{}
	n.idle = sync.NewCond(&n.life)
	var dying sync.WaitGroup
	n.alive(func() {
		dying.Go(n.die)
		for !n.troubled() {
			runtime.Gosched() // until the death has begun
		}
		if n.alive(func() {}) {
			t.Error("something was begun after the death")
		}
		if !n.death().IsZero() {
			t.Error("the gateway died while it did something")
		}
	})
	dying.Wait()
	if n.death().IsZero() || n.alive(func() {}) {
		t.Error("the gateway lives")
	}
}
