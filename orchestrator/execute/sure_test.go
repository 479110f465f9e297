package execute

import (
	"context"
	"sync/atomic"
	"testing"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/store"
	"voicegw/store/storetest"
)

// TestNothingBeginsInALostConversation: a process that may have lost its conversation changes nothing, leaves no
// entry that would block another process, and asks no question. Reading calls run.
func TestNothingBeginsInALostConversation(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		c := f.talk("s1", "ada")
		c.c.Owned = func() bool { return false }
		f.ledger.Before = func(_ context.Context, op storetest.Op, _ string) error {
			t.Errorf("the ledger was asked to %s", op)
			return nil
		}
		if env := f.run(c, f.job("c1", "book", `{"name":"ada","time":"9:00"}`)); !failed(env, registry.ErrorTransient) {
			t.Errorf("a call that writes was answered with %+v", env)
		}
		c.Ask(calls.Ask(f.job("c2", "pay", `{"name":"ada"}`)))
		c.Wait()
		if len(f.asked) != 1 || f.asked[0].Token != "" || f.asked[0].Refused != nil || len(f.questions.All()) != 0 {
			t.Errorf("the question was reported as %+v, and the store has %+v", f.asked, f.questions.All())
		}
		if begun, kept := f.ran(), f.ledger.Entries(); len(begun) != 0 || len(kept) != 0 {
			t.Errorf("handlers began for %v, and the ledger has %+v", begun, kept)
		}
		if env := f.run(c, f.job("c3", "look", `{}`)); !env.OK {
			t.Errorf("a call that reads was answered with %+v", env)
		}
	})
}

// TestConversationIsLostWhileTheLedgerIsWritten: a process that was stopped while it entered a call in the ledger,
// and has lost its conversation when it continues, does not begin the call, and removes the entry.
func TestConversationIsLostWhileTheLedgerIsWritten(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		var lost atomic.Bool
		c := f.talk("s1", "ada")
		c.c.Owned = func() bool { return !lost.Load() }
		f.ledger.Before = func(_ context.Context, op storetest.Op, _ string) error {
			if op == storetest.Reserve {
				lost.Store(true)
			}
			return nil
		}
		if env := f.run(c, f.job("c1", "book", `{"name":"ada","time":"9:00"}`)); !failed(env, registry.ErrorTransient) || env.Error.PartialSideEffects {
			t.Errorf("it was answered with %+v", env)
		}
		if begun, kept := f.ran(), f.ledger.Entries(); len(begun) != 0 || len(kept) != 0 {
			t.Errorf("handlers began for %v, and the ledger has %+v", begun, kept)
		}
	})
}

// TestAnotherProcessKnowsTheCall: before each writing call, with a business key (book) or without one (wipe), it is
// saved that the call has begun. If that fails, the call does not begin and leaves nothing in the ledger.
func TestAnotherProcessKnowsTheCall(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		c := f.talk("s1", "ada")
		var begun, kept []int
		var away error
		c.c.Checkpoint = func(context.Context) error {
			begun, kept = append(begun, len(f.ran())), append(kept, len(f.ledger.Entries()))
			return away
		}
		if env := f.run(c, f.job("c1", "look", `{"name":"ada"}`)); !env.OK || len(begun) != 0 {
			t.Errorf("a call that reads was answered with %+v, and saved %d times", env, len(begun))
		}
		writers := []string{"book", "wipe"}
		for i, tool := range writers {
			if env := f.run(c, f.job("c-"+tool, tool, `{"name":"ada"}`)); !env.OK || len(begun) != i+1 || begun[i] != i+1 || kept[i] != i+1 {
				t.Errorf("%s was answered with %+v; %v handlers had begun when it was saved, and the ledger had %v entries", tool, env, begun, kept)
			}
		}
		away = store.ErrUnavailable
		for _, tool := range writers {
			if env := f.run(c, f.job("d-"+tool, tool, `{"name":"bob"}`)); !failed(env, registry.ErrorTransient) || env.Error.PartialSideEffects {
				t.Errorf("%s was answered with %+v", tool, env)
			}
		}
		if begun, kept := f.ran(), f.ledger.Entries(); len(begun) != 3 || len(kept) != 2 {
			t.Errorf("handlers began for %v, and the ledger has %+v", begun, kept)
		}
	})
}
