package orchestrator

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// TestStepIsPure: the same arguments give the same results, and the given state does not change (invariant 7).
func TestStepIsPure(t *testing.T) {
	for i := range testutil.SampleUnderRace(40) {
		seed := uint64(i)
		tk := newTalk(t, seed, uint8(seed))
		tk.twice = true
		for range 60 {
			tk.step()
		}
		tk.finish()
	}
}

// FuzzConversation checks the invariants in a random conversation.
func FuzzConversation(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed, uint8(seed), uint16(150))
	}
	f.Add(uint64(34), uint8(201), uint16(439))    // approved after the session, and done before
	f.Add(uint64(2694), uint8(6), uint16(210))    // speech is committed after the gateway has ended it
	f.Add(uint64(152), uint8(1), uint16(358))     // a turn fails while an item of it is open
	f.Add(uint64(358), uint8(0), uint16(312))     // the same at another time
	f.Add(uint64(3431), uint8(167), uint16(90))   // a call is repeated on another connection while the first one runs
	f.Add(uint64(13598), uint8(158), uint16(180)) // another connection is asked for the answer to speech
	f.Add(uint64(7), uint8(224), uint16(300))     // several takeovers
	f.Fuzz(func(t *testing.T, seed uint64, sort uint8, n uint16) {
		hold(t, seed, sort, int(n%600))
	})
}

// TestRandomConversations checks thousands of them.
func TestRandomConversations(t *testing.T) {
	many := testutil.SampleUnderRace(1500)
	if testing.Short() {
		many = 150
	}
	for seed := range uint64(many) {
		hold(t, seed, uint8(seed%192), 60+int(seed%7)*30)
	}
}

// TestRandomTakeovers checks conversations with several takeovers.
func TestRandomTakeovers(t *testing.T) {
	many := testutil.SampleUnderRace(640)
	if testing.Short() {
		many = 64
	}
	for seed := range uint64(many) {
		hold(t, seed, uint8(takenOver+seed%32), 60+int(seed%7)*30)
	}
}

// hold runs one conversation of n random events.
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

// TestRetryDuringCall: a failed answer is requested again while a call of an earlier turn runs, after the model has
// got its result.
func TestRetryDuringCall(t *testing.T) { hold(t, 5844, 76, 220) }

// TestNewsAfterAnInterruption: the model gets the progress of a call after the user has interrupted its answer.
func TestNewsAfterAnInterruption(t *testing.T) { hold(t, 5550, 174, 240) }

// TestStateIsBounded: the state does not grow with the length of a call, even if audio, tools, questions, notices and
// utterances never end. The test measures the whole state, and so future fields too.
func TestStateIsBounded(t *testing.T) {
	for name, caps := range map[string]transport.Capabilities{"hearing": capsHearing, "deaf": capsDeaf, "aside": capsAside} {
		tk := &talk{rng: nil, state: NewState(caps, NewRules(Policy{}), toolbox(), testMark, epoch), at: epoch, watch: newWatcher(t, caps, Policy{})}
		tk.take(Began{})
		var first, second int // the largest state of the first and of the second half
		const rounds = 100
		for i := range 2 * rounds {
			busyRound(tk, i)
			if i%8 > 0 {
				continue
			}
			if size := len(dump(tk.state)); i < rounds {
				first = max(first, size)
			} else {
				second = max(second, size)
			}
		}
		if second > first+first/20 { // longer numbers
			t.Errorf("%s: the state has grown from %d to %d bytes", name, first, second)
		}
	}
}

// busyRound is a turn that begins much and ends little.
func busyRound(tk *talk, i int) {
	tk.at = tk.at.Add(time.Second)
	id := func(what string) string { return fmt.Sprintf("%s_%09d", what, i) }
	call := func(what, tool, args string) {
		tk.take(FromModel{transport.ToolCall{Call: id(what), ID: id(what), Name: tool, Args: json.RawMessage(args)}})
	}
	tk.take(UserSpeechStarted{Item: id("user"), At: tk.at})
	tk.take(UserSpeechStopped{Item: id("user"), EndAt: tk.at, SpeechMS: 900})
	tk.take(FromModel{transport.InputCommitted{Item: id("user")}})
	tk.take(FromModel{transport.ResponseStarted{ID: id("resp")}})
	call("good", "kb_get", fmt.Sprintf(`{"id":"%d"}`, i))
	call("hangs", []string{"slow_one", "report", "book"}[i%3], []string{``, ``, fmt.Sprintf(`{"name":"%d"}`, i)}[i%3])
	call("pays", "pay", fmt.Sprintf(`{"amount":%d}`, i))
	tk.take(UserText{Text: "and"})
	call("again", "remember", ``)
	call("unknown", "launch_rocket", ``)
	tk.take(AudioBegan{id("audio")})
	for _, c := range tk.running {
		if r := tk.watch.tools.calls[c].run; r.Prepared.Tool().Category == spec.CategoryRetrieval || r.Reference != "" || r.Prepared.Tool().ToolID == "remember" {
			tk.take(OfCall{calls.Finished{Call: c, Envelope: registry.Envelope{OK: true, Data: json.RawMessage(`{}`),
				Intents: []registry.Intent{registry.SetPendingMessage("more"), registry.SetPendingMessage("and more")}}}})
		}
	}
	tk.running = nil
	for _, c := range tk.asking {
		tk.take(OfCall{calls.Recorded{Call: c, Token: id("token"), Name: id("token"), Reference: id("ref"), ExpiresAt: tk.at.Add(time.Hour)}})
	}
	tk.asking = nil
	if n := len(tk.tokens); n > 0 && i%10 > 0 { // every tenth question is never answered
		tk.take(ConfirmationAnswer{Token: tk.tokens[n-1], Approved: i%4 == 0})
	}
	for _, r := range tk.resolving {
		tk.take(OfCall{calls.Resolved{Token: r.Token, Outcome: map[bool]calls.Outcome{true: calls.OutcomeApproved, false: calls.OutcomeDenied}[r.Approved], By: r.By}})
	}
	tk.resolving = nil
}
