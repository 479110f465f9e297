package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/storetest"
)

// ask records a question about a call and returns it.
func (f *fixture) ask(c *Runner, j calls.Run) calls.Recorded {
	f.t.Helper()
	c.Ask(calls.Ask(j))
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 || f.asked[len(f.asked)-1].Call != j.Call {
		f.t.Fatalf("the question was not reported: %+v", f.asked)
	}
	return f.asked[len(f.asked)-1]
}

// resolve answers a question and returns the reported outcome.
func (f *fixture) resolve(c *Runner, a calls.Resolve) calls.Resolved {
	f.t.Helper()
	f.mu.Lock()
	before := len(f.resolved)
	f.mu.Unlock()
	c.Resolve(a)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.resolved) != before+1 {
		f.t.Fatalf("%d resolutions of one answer", len(f.resolved)-before)
	}
	return f.resolved[before]
}

// TestAsk: the question is stored with everything needed to run it, under an unguessable token, for five minutes; the
// reference does not reveal the token.
func TestAsk(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		c := f.talk("s1", "ada")
		j := f.job("c1", "pay", `{"time":"9:00","name":"<bob> & co"}`)
		j.Turn = 4
		q := f.ask(c, j)
		all := f.questions.All()
		if len(all) != 1 {
			t.Fatalf("%d questions are stored", len(all))
		}
		now := time.Now().UTC()
		got := all[0]
		if len(q.Token) < 3+26 || !strings.HasPrefix(q.Token, "cf_") || len(q.Reference) != 6 || strings.Contains(q.Token, q.Reference) {
			t.Errorf("the token is %q and its reference %q", q.Token, q.Reference)
		}
		if got.Token != q.Token || got.Reference != q.Reference || !got.ExpiresAt.Equal(q.ExpiresAt) || !q.ExpiresAt.Equal(now.Add(5*time.Minute)) || !got.CreatedAt.Equal(now) {
			t.Errorf("reported %+v, stored %+v", q, got)
		}
		if string(got.Args) != `{"name":"<bob> & co","time":"9:00"}` || got.Preview != "Do it for <bob> & co" || got.Turn != 4 {
			t.Errorf("stored %s, %q, turn %d", got.Args, got.Preview, got.Turn)
		}
		if got.Session != "s1" || got.User != "ada" || got.Agent != "default" || got.Conversation != "conv" || got.Mode != "voice" ||
			got.Tool != "pay" || got.ToolVersion != "1.0.0" || got.RegistryVersion != f.tools.Version() || got.IdempotencyKey != "provider:c1" {
			t.Errorf("stored %+v", got)
		}
		if other := f.ask(c, f.job("c2", "pay", `{}`)); other.Token == q.Token || other.Reference == q.Reference {
			t.Errorf("two questions are %s", other.Token)
		}
		if len(f.ran()) != 0 {
			t.Error("a question has run its tool")
		}
	})
}

// TestAskFails: no client gets a token that is not recorded, and the log has none.
func TestAskFails(t *testing.T) {
	for name, before := range map[string]storetest.Before{
		"down":  func(context.Context, storetest.Op, string) error { return store.ErrUnavailable },
		"hangs": func(ctx context.Context, _ storetest.Op, _ string) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				f.questions.Before = before
				c := f.talk("s1", "ada")
				c.Ask(calls.Ask(f.job("c1", "pay", `{}`)))
				began := time.Now()
				c.Wait()
				if len(f.asked) != 1 || f.asked[0] != (calls.Recorded{Call: "c1"}) || time.Since(began) > 5*time.Second {
					t.Errorf("reported %+v after %s", f.asked, time.Since(began))
				}
				if !f.log.has("not recorded") || f.log.has("cf_") {
					t.Error("the log lacks the failure or has a token")
				}
			})
		})
	}
}

// TestResolve: the reported outcome is that of the store; it is reported once, and only to its own session.
func TestResolve(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		c, other := f.talk("s1", "ada"), f.talk("s2", "ada")
		q := f.ask(c, f.job("c1", "pay", `{}`))
		if r := f.resolve(other, calls.Resolve{Token: q.Token, Approved: true}); r.Outcome != calls.OutcomeExpired {
			t.Errorf("another session got %+v", r)
		}
		if r := f.resolve(c, calls.Resolve{Token: q.Token, Approved: true, By: "client"}); r != (calls.Resolved{Token: q.Token, Outcome: calls.OutcomeApproved, By: "client"}) {
			t.Errorf("reported %+v", r)
		}
		if r := f.resolve(c, calls.Resolve{Token: q.Token, Approved: false, By: "client"}); r != (calls.Resolved{Token: q.Token, Outcome: calls.OutcomeApproved, By: "api"}) {
			t.Errorf("a second time: %+v", r)
		}
		if r := f.resolve(c, calls.Resolve{Token: "cf_guess", Approved: true}); r.Outcome != calls.OutcomeExpired {
			t.Errorf("a guess: %+v", r)
		}
		late := f.ask(c, f.job("c2", "pay", `{"name":"late"}`))
		pass(5 * time.Minute)
		if r := f.resolve(c, calls.Resolve{Token: late.Token, Approved: true}); r.Outcome != calls.OutcomeExpired {
			t.Errorf("late: %+v", r)
		}
		if len(f.ran()) != 0 {
			t.Error("an answer alone has run the tool")
		}
	})
}

// TestNoConfirmations: without a store for questions none can be asked or answered.
func TestNoConfirmations(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		f.e.opts.Confirmations = nil
		c := f.talk("s1", "ada")
		if q := f.ask(c, f.job("c1", "pay", `{}`)); q.Token != "" {
			t.Errorf("asked %+v", q)
		}
		if r := f.resolve(c, calls.Resolve{Token: "x", Approved: true}); r.Outcome != calls.OutcomeFailed {
			t.Errorf("resolved %+v", r)
		}
		if _, err := f.e.Answer(t.Context(), "", "x", true); err == nil {
			t.Error("answered")
		}
	})
}

// TestAnswerOfDisconnectedCaller: an answer by the API counts and is reported even if its caller disconnects while it is
// recorded.
func TestAnswerOfDisconnectedCaller(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		q := f.ask(f.talk("s1", "ada"), f.job("c1", "pay", `{}`))
		ctx, leave := context.WithCancel(t.Context())
		f.questions.Before = func(ctx context.Context, _ storetest.Op, _ string) error { leave(); return ctx.Err() }
		if got, err := f.e.Answer(ctx, "", q.Token, true); err != nil || got.Outcome != store.Approved || got.Session != "s1" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := f.e.Answer(t.Context(), "", q.Token, true); !errors.Is(err, store.ErrUsed) {
			t.Errorf("a second time: %v", err)
		}
	})
}

// stored is the question about a call of pay, as found later.
func (f *fixture) stored(raw string) store.Confirmation {
	q := f.ask(f.talk("gone", "ada"), f.job("c1", "pay", raw))
	c, err := f.e.Answer(f.t.Context(), "", q.Token, true)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// TestRunStored: a stored call runs with the arguments that were shown, as its ended session, with one ledger entry,
// however often it is requested.
func TestRunStored(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		var got registry.Session
		f.do = func(_ context.Context, c call) (registry.Result, error) {
			got = c.Session
			return registry.Result{Data: c.Args}, nil
		}
		c := f.stored(`{"name":"<bob>"}`)
		env, p := f.e.RunStored(t.Context(), "call_1", f.tools, c, Conversation{})
		if !env.OK || !strings.Contains(string(env.Data), "<bob>") || p == nil || p.Tool().ToolID != "pay" {
			t.Errorf("answered %+v", env)
		}
		if got.ID != "gone" || got.UserID != "ada" || got.ConversationID != "conv" || got.Turn != 1 || !got.Vouched || !slices.Equal(got.Scopes, []string{"hr"}) || got.Now != time.Now().UTC() {
			t.Errorf("run as %+v", got)
		}
		if env, _ := f.e.RunStored(t.Context(), "call_1", f.tools, c, Conversation{}); !env.OK || !env.Meta.CacheHit || len(f.ran()) != 1 {
			t.Errorf("a second time: %+v after %d runs", env, len(f.ran()))
		}
		if state := f.only(); state != "done" {
			t.Errorf("the entry is %s", state)
		}
	})
}

// TestRunStoredRefuses: a tool that has changed since the question is not run.
func TestRunStoredRefuses(t *testing.T) {
	change := func(id string, f func(*spec.Spec)) []registry.Entry {
		all := entries()
		i := slices.IndexFunc(all, func(e registry.Entry) bool { return e.ToolID == id })
		f(&all[i].Spec)
		all[i].Forms.OpenAI, all[i].Forms.OpenAIChat = all[i].Parameters, all[i].Parameters
		return all
	}
	for name, tc := range map[string]struct {
		tools []registry.Entry
		want  registry.ErrorType
	}{
		"another version": {change("pay", func(s *spec.Spec) { s.Version = "2.0.0" }), registry.ErrorConflict},
		"another default": {change("pay", func(s *spec.Spec) {
			s.Parameters = json.RawMessage(strings.Replace(string(s.Parameters), `"time":{"type":"string"}`, `"time":{"type":"string","default":"now"}`, 1))
		}), registry.ErrorConflict},
		"other arguments": {change("pay", func(s *spec.Spec) {
			s.Parameters = json.RawMessage(strings.Replace(string(s.Parameters), `"name":{"type":"string"}`, `"name":{"type":"string","maxLength":1}`, 1))
		}), registry.ErrorValidation},
		"another mode":          {change("pay", func(s *spec.Spec) { s.AllowedModes = []spec.Mode{spec.ModeText} }), registry.ErrorModeRestricted},
		"a scope that it lacks": {change("pay", func(s *spec.Spec) { s.Requires = []string{"hr", "pay.write"} }), registry.ErrorNotFound},
		"gone":                  {slices.DeleteFunc(entries(), func(e registry.Entry) bool { return e.ToolID == "pay" }), registry.ErrorNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				c := f.stored(`{"name":"bob"}`)
				now := load(t, f.handle, tc.tools...)
				env, _ := f.e.RunStored(t.Context(), "call_1", now, c, Conversation{})
				if !failed(env, tc.want) || env.Error.PartialSideEffects || len(f.ran()) != 0 || len(f.ledger.Entries()) != 0 {
					t.Errorf("answered %+v after %v", env.Error, f.ran())
				}
			})
		})
	}
}

// TestRunStoredOutlivesItsCaller: a stored call outlives its caller but not the gateway.
func TestRunStoredOutlivesItsCaller(t *testing.T) {
	bubble(t, Options{Grace: 3 * time.Second}, func(t *testing.T, f *fixture) {
		c := f.stored(`{}`)
		ctx, leave := context.WithCancel(t.Context())
		f.do = func(ctx context.Context, _ call) (registry.Result, error) {
			leave()
			select {
			case <-time.After(time.Second):
				return registry.Result{}, nil
			case <-ctx.Done():
				return registry.Result{}, ctx.Err()
			}
		}
		if env, _ := f.e.RunStored(ctx, "call_1", f.tools, c, Conversation{}); !env.OK {
			t.Errorf("its caller is disconnected: %+v", env)
		}
		f.do = func(ctx context.Context, _ call) (registry.Result, error) {
			<-ctx.Done()
			return registry.Result{}, ctx.Err()
		}
		c = f.stored(`{"name":"hangs"}`)
		ended := make(chan registry.Envelope) // from the goroutine below; not closed
		go func() {
			env, _ := f.e.RunStored(t.Context(), "call_1", f.tools, c, Conversation{})
			ended <- env
		}()
		synctest.Wait()
		began := time.Now()
		go f.e.Close()
		if env := <-ended; !failed(env, registry.ErrorInternal) || time.Since(began) != 3*time.Second {
			t.Errorf("after %s: %+v", time.Since(began), env)
		}
		synctest.Wait()
		if env, p := f.e.RunStored(t.Context(), "call_1", f.tools, c, Conversation{}); !failed(env, registry.ErrorTransient) || p != nil || len(f.ran()) != 2 {
			t.Errorf("after Close: %+v", env)
		}
	})
}

// TestTokensAreNotLogged: whatever fails.
func TestTokensAreNotLogged(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		c := f.talk("s1", "ada")
		q := f.ask(c, f.job("c1", "pay", `{}`))
		f.questions.Before = func(context.Context, storetest.Op, string) error { return store.ErrUnavailable }
		f.ledger.Before = f.questions.Before
		f.resolve(c, calls.Resolve{Token: q.Token, Approved: true})
		f.run(c, f.job("c2", "pay", `{}`))
		c.Ask(calls.Ask(f.job("c3", "pay", `{}`)))
		c.Wait()
		if f.log.has(q.Token) || f.log.has("cf_") || !f.log.has("ledger") {
			t.Errorf("the log: %s", fmt.Sprint(f.log.buf.String()))
		}
	})
}

// TestRefusedByCheck: a refusal of the tool's own check is the answer. No question is recorded, and the check knows
// the conversation and the time.
func TestRefusedByCheck(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		var seen registry.Session
		f.check = func(_ context.Context, c call) error {
			seen = c.Session
			return registry.Errorf(registry.ErrorValidation, "%s cannot be paid.", c.Args.Name)
		}
		c := f.talk("s1", "ada")
		j := f.job("c1", "pay", `{"name":"bob"}`)
		j.Turn = 4
		q := f.ask(c, j)
		if q.Refused == nil || !failed(*q.Refused, registry.ErrorValidation) || q.Token != "" || len(f.questions.All()) != 0 || len(f.ran()) != 0 {
			t.Errorf("%+v, %d questions, ran %v", q, len(f.questions.All()), f.ran())
		}
		if seen.UserID != "ada" || seen.Turn != 4 || !seen.Now.Equal(time.Now()) || seen.Mode != spec.ModeVoice {
			t.Errorf("the check saw %+v", seen)
		}
		f.check = nil
		if q := f.ask(c, j); q.Refused != nil || q.Token == "" {
			t.Errorf("%+v", q)
		}
	})
}

// TestRefusedAfterApproval: the check runs again when the approved call runs, and a refusal leaves nothing in the
// ledger.
func TestRefusedAfterApproval(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		c := f.talk("s1", "ada")
		j := f.job("c1", "pay", `{"name":"bob"}`)
		f.ask(c, j)
		f.check = func(context.Context, call) error { return registry.Errorf(registry.ErrorValidation, "It is too late.") }
		j.Reference = "REF"
		if env := f.run(c, j); !failed(env, registry.ErrorValidation) || env.Error.PartialSideEffects || len(f.ran()) != 0 || len(f.ledger.Entries()) != 0 {
			t.Errorf("%s, ran %v, %d entries", env.Encode(), f.ran(), len(f.ledger.Entries()))
		}
	})
}
