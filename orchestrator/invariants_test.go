package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"voicegw/transport"
)

// TestStepIsPure: the same arguments give the same results, and the state given
// is left as it was (invariant 7).
func TestStepIsPure(t *testing.T) {
	for seed := range uint64(12) {
		tk := newTalk(t, seed, uint8(seed))
		for range 60 {
			tk.at = tk.at.Add(time.Duration(tk.rng.IntN(900)) * time.Millisecond)
			in := tk.toolInput()
			if tk.rng.IntN(2) == 0 {
				in = tk.speechInput()
			}
			before := dump(tk.state)
			one, actionsOne := Step(tk.state, tk.at, in)
			two, actionsTwo := Step(tk.state, tk.at, in)
			if dump(tk.state) != before {
				t.Fatalf("%T changed the state it was given", in)
			}
			if dump(one)+showAll(actionsOne) != dump(two)+showAll(actionsTwo) {
				t.Fatalf("%T had two outcomes", in)
			}
			tk.take(in)
		}
	}
}

// FuzzConversation holds a random conversation and checks what must hold in each.
func FuzzConversation(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed, uint8(seed), uint16(150))
	}
	f.Fuzz(func(t *testing.T, seed uint64, sort uint8, n uint16) {
		hold(t, seed, sort, int(n%600))
	})
}

// TestRandomConversations holds thousands of them.
func TestRandomConversations(t *testing.T) {
	many := uint64(1200)
	if testing.Short() {
		many = 150
	}
	for seed := range many {
		hold(t, seed, uint8(seed%36), 60+int(seed%7)*30)
	}
}

// hold holds one conversation of n random things.
func hold(t *testing.T, seed uint64, sort uint8, n int) {
	t.Helper()
	tk := newTalk(t, seed, sort)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, sort %d, %d things", seed, sort, n)
		}
	}()
	for range n {
		tk.step()
	}
	tk.finish()
	tk.watch.over()
}

// TestStateIsBounded: nothing grows with the length of a call.
func TestStateIsBounded(t *testing.T) {
	s, at := NewState(capsHearing, Policy{}, toolbox(), epoch), epoch
	for i := range 2000 {
		at = at.Add(time.Second)
		for _, in := range []Input{
			UserSpeechStarted{Item: fmt.Sprint("u", i), At: at},
			FromModel{transport.InputCommitted{Item: fmt.Sprint("u", i)}},
			FromModel{transport.ResponseStarted{ID: fmt.Sprint("r", i)}},
			FromModel{transport.ToolCall{Call: fmt.Sprint("c", i), Name: "x"}},
			AudioBegan{fmt.Sprint("a", i)},
		} {
			s, _ = Step(s, at, in)
		}
	}
	if len(s.utterances) > maxUtterances || len(s.items) > maxItems || len(s.calls) > maxCalls || len(s.truncations) > maxItems {
		t.Errorf("the state has grown: %d utterances, %d items, %d calls, %d truncations", len(s.utterances), len(s.items), len(s.calls), len(s.truncations))
	}
}
