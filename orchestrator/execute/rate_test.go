package execute

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// rated gives tools of a fixture a rate limit of two calls in an hour.
func (f *fixture) rated(ids ...string) {
	f.t.Helper()
	all := entries()
	for i := range all {
		for _, id := range ids {
			if all[i].ToolID == id {
				all[i].RateLimit = &spec.RateLimit{Calls: 2, Window: "1h"}
			}
		}
	}
	f.tools = loadChecked(f.t, f.handle, func(ctx context.Context, c call) error {
		if f.check == nil {
			return nil
		}
		return f.check(ctx, c)
	}, all...)
}

// limited checks that an answer names the rate limit, and when the call may be repeated.
func limited(t *testing.T, env registry.Envelope, after time.Duration) {
	t.Helper()
	if !failed(env, registry.ErrorRateLimit) || !env.Error.Retryable || env.Error.PartialSideEffects || !strings.Contains(env.Error.Message, "again in "+after.String()) {
		t.Fatalf("answered %+v", env.Error)
	}
	var details struct {
		Calls       int    `json:"calls"`
		Window      string `json:"window"`
		RetryAfterS int64  `json:"retry_after_s"`
		RetryAt     string `json:"retry_at"`
	}
	err := json.Unmarshal(env.Error.Details, &details)
	if err != nil || details.Calls != 2 || details.Window != "1h" || details.RetryAfterS != int64(after.Seconds()) || details.RetryAt != time.Now().Add(after).UTC().Format(time.RFC3339) {
		t.Errorf("the details are %s, %v", env.Error.Details, err)
	}
}

// TestRateLimit: a user's calls are counted per tool over all conversations; the user may call again when the first
// call is an hour old.
func TestRateLimit(t *testing.T) {
	for _, tool := range []string{"look", "again"} { // one that reads, one that writes
		t.Run(tool, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				f.rated("look", "again")
				here, there, other := f.talk("s1", "ada"), f.talk("s2", "ada"), f.talk("s3", "bob")
				if env := f.run(here, f.job("c1", tool, `{}`)); !env.OK {
					t.Fatalf("the first call: %+v", env.Error)
				}
				pass(10 * time.Minute)
				if env := f.run(there, f.jobIn(spec.ModeText, "c2", tool, `{}`)); !env.OK {
					t.Fatalf("the second call, in text: %+v", env.Error)
				}
				limited(t, f.run(here, f.job("c3", tool, `{}`)), 50*time.Minute)
				for _, free := range []struct {
					c    *Runner
					tool string
				}{{other, tool}, {here, "rare"}, {here, map[string]string{"look": "again", "again": "look"}[tool]}} {
					if env := f.run(free.c, f.job("d-"+free.tool, free.tool, `{}`)); !env.OK {
						t.Errorf("%s in %s: %+v", free.tool, free.c.c.Session.ID, env.Error)
					}
				}
				pass(50 * time.Minute)
				if env := f.run(here, f.job("c4", tool, `{}`)); !env.OK {
					t.Errorf("after an hour: %+v", env.Error)
				}
				limited(t, f.run(here, f.job("c5", tool, `{}`)), 10*time.Minute)
				if n := len(f.ran()); n != 6 {
					t.Errorf("%d calls have run", n)
				}
			})
		})
	}
}

// TestWhatCounts: a failed call counts; one that did not begin, or was answered from the ledger, does not. A refused
// call leaves nothing in the ledger.
func TestWhatCounts(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		f.rated("book", "look")
		c := f.talk("s1", "ada")
		f.check = func(_ context.Context, k call) error {
			if k.Args.Name == "nobody" {
				return registry.Errorf(registry.ErrorValidation, "nobody is not a name")
			}
			return nil
		}
		for _, id := range []string{"c1", "c2", "c3"} {
			if env := f.run(c, f.job(id, "book", `{"name":"nobody"}`)); !failed(env, registry.ErrorValidation) {
				t.Fatalf("refused by its check: %+v", env)
			}
		}
		if env := f.run(c, f.job("c4", "book", `{"name":"bob"}`)); !env.OK {
			t.Fatalf("the first: %+v", env.Error)
		}
		for _, id := range []string{"c5", "c6"} {
			if env := f.run(c, f.job(id, "book", `{"name":"bob"}`)); !env.OK || !env.Meta.CacheHit {
				t.Fatalf("the same again: %+v", env)
			}
		}
		f.do = func(context.Context, call) (registry.Result, error) {
			return registry.Result{}, registry.Errorf(registry.ErrorTransient, "away")
		}
		if env := f.run(c, f.job("c7", "book", `{"name":"eve"}`)); !failed(env, registry.ErrorTransient) {
			t.Fatalf("the second: %+v", env)
		}
		limited(t, f.run(c, f.job("c8", "book", `{"name":"mia"}`)), time.Hour)
		if env := f.run(c, f.job("c9", "book", `{"name":"bob"}`)); !env.OK || !env.Meta.CacheHit {
			t.Errorf("a finished action is not answered beyond the limit: %+v", env)
		}
		if f.only() != "done" {
			t.Error("a refused call is in the ledger")
		}
		// A call that is repeated automatically counts once, even if the check refuses the second run.
		runs := 0
		f.check = func(context.Context, call) error {
			if runs++; runs%2 == 0 {
				return registry.Errorf(registry.ErrorTransient, "away")
			}
			return nil
		}
		for _, id := range []string{"d1", "d2"} {
			if env := f.run(c, f.jobIn(spec.ModeText, id, "look", `{}`)); !failed(env, registry.ErrorTransient) {
				t.Fatalf("%s: %+v", id, env)
			}
		}
		if env := f.run(c, f.jobIn(spec.ModeText, "d3", "look", `{}`)); !failed(env, registry.ErrorRateLimit) {
			t.Errorf("beyond the limit: %+v", env)
		}
	})
}

// TestNoQuestionBeyondTheLimit: the question is not asked, and a call approved before is refused too.
func TestNoQuestionBeyondTheLimit(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		f.rated("pay")
		checks := 0
		f.check = func(context.Context, call) error { checks++; return nil }
		kept, c := f.stored(`{}`), f.talk("s1", "ada")
		approved := func(id string) registry.Envelope {
			j := f.job(id, "pay", `{}`)
			j.Reference = "REF-" + id
			return f.run(c, j)
		}
		for _, id := range []string{"c1", "c2"} {
			if q := f.ask(c, f.job(id, "pay", `{}`)); q.Refused != nil || q.Token == "" {
				t.Fatalf("%s: %+v", id, q)
			}
			if env := approved(id); !env.OK {
				t.Fatalf("%s: %+v", id, env.Error)
			}
		}
		before, questions := checks, len(f.questions.All())
		q := f.ask(c, f.job("c3", "pay", `{}`))
		if q.Refused == nil || q.Token != "" || len(f.questions.All()) != questions || checks != before {
			t.Fatalf("a question was asked: %+v, after %d checks", q, checks-before)
		}
		limited(t, *q.Refused, time.Hour)
		limited(t, approved("c4"), time.Hour)
		if env, _ := f.e.RunStored(t.Context(), "call_1", f.tools, kept, Conversation{}); !failed(env, registry.ErrorRateLimit) {
			t.Errorf("a stored call: %+v", env)
		}
	})
}
