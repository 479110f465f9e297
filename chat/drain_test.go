package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport/textmodel"
)

// answering is a message in progress.
type answering struct {
	sent *turnMessages
	err  error
	over chan struct{} // closed at its end
}

func (f *fixture) begin(req Request, steps ...step) *answering {
	a := &answering{over: make(chan struct{})}
	go func() {
		defer close(a.over)
		a.sent, a.err = f.respond(f.t.Context(), req, steps...)
	}()
	synctest.Wait()
	return a
}

// TestDrainLetsAnswersEnd: answers in progress when the gateway shuts down are completed within the time limit;
// nothing new begins.
func TestDrainLetsAnswersEnd(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		slow := func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			delta("One ")
			pass(20 * time.Second)
			delta("moment.")
			return textmodel.Reply{Text: "One moment."}, ctx.Err()
		}
		first := f.begin(Request{Message: "First"}, slow)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began, drained := time.Now(), make(chan struct{})
		go func() {
			defer close(drained)
			f.agent.Drain(ctx)
		}()
		synctest.Wait()
		if _, err := f.respond(t.Context(), Request{Message: "Second", ConversationID: "other"}); !errors.Is(err, ErrDraining) {
			t.Errorf("a late message: %v", err)
		}
		<-drained
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("the drain took %v", took)
		}
		<-first.over
		if first.err != nil || first.sent.done().Status != protocol.DoneCompleted {
			t.Errorf("%v, %+v", first.err, first.sent.done())
		}
		if err := f.agent.Wait(ctx); err != nil || ctx.Err() != nil {
			t.Error(err)
		}
		if len(f.conversation("conv").Entries) != 2 || len(f.kept.taken) != 0 {
			t.Errorf("saved is %+v, the leases are %v", f.conversation("conv").Entries, f.kept.taken)
		}
	})
}

// TestDrainEndsSlowAnswers: an answer that is not complete in time ends with an error and a done. The text so far is
// saved, the conversation is free, and another gateway continues the message without repeating a call.
func TestDrainEndsSlowAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		hang step
		do   handler
		ran  string
	}{
		"in the answer": {func(ctx context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			delta("One mo")
			<-ctx.Done()
			return textmodel.Reply{}, ctx.Err()
		}, nil, "change a"},
		"before the answer": {func(ctx context.Context, _ textmodel.Prompt, _ func(string)) (textmodel.Reply, error) {
			<-ctx.Done()
			return textmodel.Reply{}, ctx.Err()
		}, nil, "change a"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				f.do = tc.do
				req := Request{Message: "First", ID: "m1"}
				first := f.begin(req, callsTools(nth(1), "change", `{"name":"a"}`), tc.hang)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				f.agent.Drain(ctx)
				if err := f.agent.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				<-first.over
				if first.err != nil {
					t.Fatal(first.err)
				}
				failed := of[*protocol.Error](first.sent)
				if len(failed) != 1 || failed[0].Code != protocol.CodeDraining || !failed[0].Retryable || first.sent.done().Status != protocol.DoneFailed {
					t.Errorf("got %+v, %+v", failed, first.sent.done())
				}
				if e := f.conversation("conv").Entries; len(e) == 0 || e[0].Text != "First" || len(f.kept.taken) != 0 {
					t.Errorf("saved is %+v, the leases are %v", e, f.kept.taken)
				}
				next := newFixture(t, fixtureSetting{shares: f})
				again, err := next.respond(t.Context(), req, says("Done."))
				if err != nil || again.done().Status != protocol.DoneCompleted {
					t.Fatalf("%v, %+v", err, again.msgs)
				}
				if ran := strings.Join(append(f.ran(), next.ran()...), " "); ran != tc.ran {
					t.Errorf("the tools ran: %s", ran)
				}
				n := 0
				for _, e := range next.conversation("conv").Entries {
					if e.Text == "First" {
						n++
					}
				}
				if n != 1 {
					t.Errorf("the message is stored %d times", n)
				}
			})
		})
	}
}

// TestDrainEndsWaits: a client that waits for a message in progress on another gateway is sent there when the time is
// up.
func TestDrainEndsWaits(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		other := newFixture(t, fixtureSetting{shares: f})
		req := Request{Message: "First", ID: "m1", ConversationID: "none"}
		release := make(chan struct{})
		there := other.begin(req, func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			<-release
			return textmodel.Reply{Text: "There."}, nil
		})
		here := f.begin(req)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.agent.Drain(ctx)
		<-here.over
		if !errors.Is(here.err, ErrDraining) {
			t.Errorf("the waiting client gets %v", here.err)
		}
		close(release)
		<-there.over
		if there.err != nil || there.sent.done().Status != protocol.DoneCompleted {
			t.Errorf("%v", there.err)
		}
	})
}

// TestWaitHasAnEnd: a tool that does not stop is reported as a message that has not ended.
func TestWaitHasAnEnd(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		release := make(chan struct{})
		f.do = func(context.Context, toolCall) (registry.Result, error) {
			<-release
			return registry.Result{Data: "done"}, nil
		}
		first := f.begin(Request{Message: "First"}, callsTools(nth(1), "book", `{"name":"a"}`), says("Done."))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.agent.Drain(ctx)
		late, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var left *LeftError
		if err := f.agent.Wait(late); !errors.As(err, &left) || left.Messages != 1 {
			t.Errorf("the rest is %v", err)
		}
		close(release)
		<-first.over
		if err := f.agent.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
