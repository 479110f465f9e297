package chat

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// TestBusy: a conversation answers one message at a time, and is free afterwards.
func TestBusy(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("First", func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			second, err := f.respond(t.Context(), Request{Message: "Second"})
			if !errors.Is(err, ErrBusy) || len(second.msgs) != 0 {
				t.Errorf("%v, %d messages", err, len(second.msgs))
			}
			// Another conversation is free.
			return says("Yes.")(ctx, p, delta)
		})
		if sent.done().Turn != 1 || f.say("Third", says("Yes.")).done().Turn != 2 {
			t.Error("the turns are not counted")
		}
	})
}

// TestLostLeaseLosesNothing: a turn whose lease expired in an outage of the store, so that another turn ran at the
// same time, is saved after that one and overwrites nothing.
func TestLostLeaseLosesNothing(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.say("First", func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			f.kept.mu.Lock()
			delete(f.kept.taken, "conv")
			f.kept.mu.Unlock()
			f.say("Second", says("Two."))
			return says("One.")(ctx, p, delta)
		})
		var texts []string
		for _, e := range f.conversation("conv").Entries {
			texts = append(texts, e.Text)
		}
		if diff := cmp.Diff([]string{"Second", "Two.", "First", "One."}, texts); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAnotherNodeHasTakenIt: a turn whose conversation was taken by another node, which considered this one dead,
// writes nothing, and its client learns that the turn is not saved.
func TestAnotherNodeHasTakenIt(t *testing.T) {
	for name, other := range map[string]func(f *fixture){
		"and answers in it": func(f *fixture) { f.kept.taken["conv"] = &lease{f.kept, "conv"} },
		"and has answered this message": func(f *fixture) {
			delete(f.kept.taken, "conv")
			for key := range f.agent.messages {
				if _, err := f.answers.Save(f.t.Context(), key, []byte(`{"name":"n","done":true}`), 0, time.Hour); err != nil {
					f.t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				sent := f.say("First", func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
					f.kept.append(t, "conv", conversation.Entry{Text: "by the other node"})
					f.kept.mu.Lock()
					defer f.kept.mu.Unlock()
					other(f)
					return says("One.")(ctx, p, delta)
				})
				if sent.done().Status != protocol.DoneFailed {
					t.Errorf("the client gets %s", sent.done().Status)
				}
				if e := f.conversation("conv").Entries; len(e) != 1 || e[0].Text != "by the other node" {
					t.Errorf("saved is %+v", e)
				}
			})
		})
	}
}

// TestLeavesWhileTextStreams: the model's request ends, the text so far is saved as interrupted, and nothing is left.
func TestLeavesWhileTextStreams(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		ctx, leave := context.WithCancel(t.Context())
		began := time.Now()
		sent, err := f.respond(ctx, Request{Message: "Tell me"}, func(ctx context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			delta("Once upon")
			leave()
			<-ctx.Done()
			return textmodel.Reply{}, context.Cause(ctx)
		})
		if err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if sent.types() != "usage done" || sent.done().Status != protocol.DoneFailed { // the client does not read it
			t.Errorf("%s, %+v", sent.types(), sent.done())
		}
		c := f.conversation("conv")
		if len(c.Entries) != 2 || c.Entries[0].Text != "Tell me" || c.Entries[1].Text != "Once upon" || !c.Entries[1].Interrupted {
			t.Errorf("%+v", c.Entries)
		}
		if len(f.kept.taken) != 0 {
			t.Error("the lease is still held")
		}
	})
}

// TestLeavesWhileToolsRun: a cancellable tool is cancelled, a writing one finishes and is done in the ledger, a
// waiting one does not begin. Each is audited, and Respond returns after the last.
func TestLeavesWhileToolsRun(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		ctx, leave := context.WithCancel(t.Context())
		f.do = func(ctx context.Context, c toolCall) (registry.Result, error) {
			if c.Tool == "stop" {
				<-ctx.Done()
				return registry.Result{}, ctx.Err()
			}
			pass(3 * time.Second)
			return registry.Result{Data: "done"}, ctx.Err()
		}
		stopped := make(chan struct{}) // closed when the client has disconnected
		go func() {
			defer close(stopped)
			synctest.Wait()
			leave()
		}()
		began := time.Now()
		sent, err := f.respond(ctx, Request{Message: "Go"}, callsTools(
			nth(1), "stop", `{}`, nth(2), "book", `{"name":"a"}`, nth(3), "look", `{"name":"b"}`, nth(4), "look", `{"name":"c"}`, nth(5), "book", `{"name":"waits"}`))
		<-stopped
		if took := time.Since(began); err != nil || took != 3*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		if slices.Contains(f.ran(), "book waits") || len(f.ran()) != 4 {
			t.Errorf("ran %v", f.ran())
		}
		if e := f.ledger.Entries(); len(e) != 1 || e[0].State != store.Done {
			t.Errorf("the ledger has %+v", e)
		}
		if sent.done().Status != protocol.DoneFailed {
			t.Errorf("%+v", sent.done())
		}
		ok := map[string]bool{}
		for _, r := range f.audited() {
			ok[r.ProviderCallID] = r.OK
		}
		if len(ok) != 5 || ok[nth(1)] || !ok[nth(2)] || !ok[nth(3)] || !ok[nth(4)] || ok[nth(5)] {
			t.Errorf("audited %v", ok)
		}
		c := f.conversation("conv")
		if len(c.Entries) != 2 || len(c.Entries[1].Calls) != 5 || !c.Entries[1].Calls[1].OK {
			t.Errorf("%+v", c.Entries)
		}
		if len(f.model.prompts) != 1 {
			t.Error("the model was asked again without a client")
		}
	})
}
