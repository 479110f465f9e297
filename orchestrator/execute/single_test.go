package execute

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/storetest"
)

// till is a process with tools and their results.
type till struct {
	executor  *Executor
	tools     *registry.Registry
	questions storetest.Confirmations

	mu      sync.Mutex // guards the following fields
	paid    int
	records []audit.Record
	sent    []protocol.ServerMessage
}

type noArgs struct{}

func entry(id string, change func(*spec.Spec)) registry.Entry {
	object := json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	declared := spec.Spec{
		ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryAction, SideEffects: spec.SideEffectsWrites,
		AllowedModes: []spec.Mode{spec.ModeText}, LatencyBudgetMS: 1000, TimeoutMS: 60_000, Parameters: object,
	}
	change(&declared)
	return registry.Entry{Spec: declared, Summary: declared.Description, Guide: "# " + id + "\n", Forms: registry.Forms{
		OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT"}`),
	}}
}

func newTill(t *testing.T) *till {
	t.Helper()
	p := &till{}
	pay := registry.Bind(func(context.Context, registry.Call[noArgs, struct{}]) (registry.Result, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.paid++
		return registry.Result{Data: map[string]int{"receipt": p.paid}}, nil
	})
	slow := registry.Bind(func(ctx context.Context, _ registry.Call[noArgs, struct{}]) (registry.Result, error) {
		select {
		case <-time.After(12 * time.Second):
			return registry.Result{}, nil
		case <-ctx.Done():
			return registry.Result{}, ctx.Err()
		}
	})
	tools, err := registry.Load(registrytest.File(t,
		entry("gift", func(*spec.Spec) {}), entry("pay", func(s *spec.Spec) { s.RequiresConfirmation, s.Preview = true, "Pay" }),
		entry("slow", func(s *spec.Spec) { s.SideEffects, s.Cancellable = spec.SideEffectsReadOnly, true })),
		registry.Options{Handlers: map[string]registry.Handler{"gift": pay, "pay": pay, "slow": slow}})
	if err != nil {
		t.Fatal(err)
	}
	p.tools = tools
	p.executor = New(Options{Ledger: new(storetest.Ledger), Confirmations: &p.questions})
	return p
}

func (p *till) audit(r audit.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = append(p.records, r)
}

func (p *till) call(session, tool, key string, scope ...string) SingleCall {
	return SingleCall{
		Executor: p.executor, Tools: p.tools.Snapshot(), Rules: calls.Policy{Mode: spec.ModeText}, Agent: calls.Agent{Name: "desk"},
		Session: registry.Session{ID: session, UserID: "ada", Mode: spec.ModeText}, Channel: "test", Tool: tool, Args: json.RawMessage(`{}`), Key: key, Scope: scope,
		Audit: p.audit, Tell: func(m protocol.ServerMessage) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.sent = append(p.sent, m)
		},
	}
}

// TestKey: within one scope, a key names one action, in any session.
func TestKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTill(t)
		defer p.executor.Close()
		for i, step := range []struct {
			key, scope string
			paid       int
		}{{"k", "a", 1}, {"k", "a", 1}, {"k", "b", 2}, {"l", "a", 3}, {"", "a", 4}, {"", "a", 5}} {
			env := p.call(string(rune('s'+i)), "gift", step.key, step.scope).Run(t.Context())
			if !env.OK || p.paid != step.paid {
				t.Errorf("step %d: paid %d times: %s", i, p.paid, env.Encode())
			}
		}
	})
	for key, ok := range map[string]bool{"": true, "k 1": true, "a\nb": false, strings.Repeat("k", MaxKey): true, strings.Repeat("k", MaxKey+1): false} {
		if err := CheckKey(key); (err == nil) != ok {
			t.Errorf("%.10q: %v", key, err)
		}
	}
}

// TestQuestion: a question that no one can answer now stays open, and a later answer runs it once, however often it
// arrives. Each step is audited, in the call's channel.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTill(t)
		defer p.executor.Close()
		desk := Decider{Executor: p.executor, Tools: p.tools.Snapshot, Audit: p.audit}
		for _, approved := range []bool{true, false} {
			env := p.call("s1", "pay", "").Run(t.Context())
			if !env.AsksUser() {
				t.Fatalf("%s", env.Encode())
			}
			name := store.QuestionName(env.Error.ConfirmationRequest.Token)
			if q, err := p.executor.Question(t.Context(), name); err != nil || q.Channel != "test" || q.User != "ada" {
				t.Errorf("%+v, %v", q, err)
			}
			c, err := p.executor.AnswerNamed(t.Context(), name, approved)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if env := desk.Decide(t.Context(), c, approved, calls.ByAPI); (env != nil) != approved || env != nil && !env.OK || p.paid != 1 {
					t.Errorf("paid %d times: %+v", p.paid, env)
				}
			}
			if _, err := p.executor.AnswerNamed(t.Context(), name, approved); !errors.Is(err, store.ErrUsed) {
				t.Errorf("answered again: %v", err)
			}
		}
		for i, want := range []string{"required", "approved", "approved", "required", "denied", "denied"} {
			if r := p.records[i]; r.Confirmation != want || r.Channel != "test" || r.SessionID != "s1" || r.UserID != "ada" || i%3 > 0 && r.ConfirmedBy != "api" {
				t.Errorf("record %d: %+v", i, r)
			}
		}
	})
}

// TestApprove: a decision function answers within the call.
func TestApprove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTill(t)
		defer p.executor.Close()
		for _, approved := range []bool{true, false} {
			call := p.call("s1", "pay", "")
			var seen []calls.Action
			call.Watch = func(a calls.Action) { seen = append(seen, a) }
			call.Approve = func(_ context.Context, q *protocol.ConfirmationRequest) bool { return approved && q.Preview == "Pay" }
			if env := call.Run(t.Context()); env.OK != approved || p.paid != 1 || len(seen) < 4 {
				t.Errorf("paid %d times, saw %d actions: %s", p.paid, len(seen), env.Encode())
			}
		}
	})
}

// TestLeaving: a cancellable call ends with its caller, and counts as not delivered. A long call reports that it
// still runs.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTill(t)
		defer p.executor.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		began := time.Now()
		if env := p.call("s1", "slow", "").Run(ctx); env.OK || time.Since(began) != 8*time.Second {
			t.Errorf("after %s: %s", time.Since(began), env.Encode())
		}
		if env := p.call("s2", "slow", "").Run(t.Context()); !env.OK || time.Since(began) != 20*time.Second {
			t.Errorf("after %s: %s", time.Since(began), env.Encode())
		}
		if len(p.records) != 2 || p.records[0].NotDelivered != "client_gone" || p.records[0].Delivered || !p.records[1].Delivered {
			t.Errorf("%+v", p.records)
		}
		shown := 0
		for _, m := range p.sent {
			if _, ok := m.(*protocol.ToolProgress); ok {
				shown++
			}
		}
		if shown < 4 {
			t.Errorf("progress was shown %d times", shown)
		}
	})
}
