package execute

import (
	"context"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// open gives tools of a fixture a window from an hour ago to an hour from now.
func (f *fixture) open(ids ...string) {
	f.t.Helper()
	all, now := entries(), time.Now().UTC()
	for i := range all {
		for _, id := range ids {
			if all[i].ToolID == id {
				day := now.Format(time.DateOnly)
				all[i].Availability = &spec.Availability{Zone: "UTC", Times: []spec.TimeWindow{{From: "00:00", To: now.Add(time.Hour).Format("15:04"), Since: day, Until: day}}}
				all[i].RateLimit = &spec.RateLimit{Calls: 1, Window: "24h"}
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

// TestCallsAfterTheWindow: after a tool's window, a call is refused in both modes, reading or writing. It leaves
// nothing in the ledger and does not count.
func TestCallsAfterTheWindow(t *testing.T) {
	for _, mode := range []spec.Mode{spec.ModeText, spec.ModeVoice} {
		for _, tool := range []string{"look", "book"} {
			t.Run(tool+" "+string(mode), func(t *testing.T) {
				bubble(t, Options{}, func(t *testing.T, f *fixture) {
					f.open("look", "book")
					c, late := f.talk("s1", "ada"), f.jobIn(mode, "c2", tool, `{"name":"eve"}`)
					pass(time.Hour - time.Second)
					if env := f.run(c, f.jobIn(mode, "c1", tool, `{}`)); !env.OK {
						t.Fatalf("within the window: %+v", env.Error)
					}
					done := len(f.ledger.Entries())
					pass(time.Second)
					env := f.run(c, late)
					if !failed(env, registry.ErrorUnavailable) || env.Error.PartialSideEffects || env.Error.Retryable {
						t.Errorf("after the window: %+v", env.Error)
					}
					if n := len(f.ran()); n != 1 || len(f.ledger.Entries()) != done {
						t.Errorf("%d calls have run, and the ledger has %d entries", n, len(f.ledger.Entries()))
					}
					if tool != "book" {
						return
					}
					if env := f.run(c, f.jobIn(mode, "c3", tool, `{}`)); !env.OK || !env.Meta.CacheHit {
						t.Errorf("an earlier action is answered %+v", env.Error)
					}
				})
			})
		}
	}
}

// TestApprovedAfterTheWindow: no question is asked after the window, and a call approved late is refused, even if its
// conversation has ended.
func TestApprovedAfterTheWindow(t *testing.T) {
	bubble(t, Options{Life: 3 * time.Hour}, func(t *testing.T, f *fixture) {
		f.open("pay")
		checks := 0
		f.check = func(context.Context, call) error { checks++; return nil }
		kept, c := f.stored(`{}`), f.talk("s1", "ada")
		if q := f.ask(c, f.job("c1", "pay", `{}`)); q.Refused != nil || q.Token == "" {
			t.Fatalf("within the window: %+v", q)
		}
		pass(time.Hour)
		before, questions := checks, len(f.questions.All())
		if q := f.ask(c, f.job("c2", "pay", `{}`)); q.Refused == nil || !failed(*q.Refused, registry.ErrorUnavailable) || len(f.questions.All()) != questions || checks != before {
			t.Errorf("asked after the window: %+v, after %d checks", q, checks-before)
		}
		approved := f.job("c1", "pay", `{}`)
		approved.Reference = "REF"
		if env := f.run(c, approved); !failed(env, registry.ErrorUnavailable) {
			t.Errorf("approved after the window: %+v", env.Error)
		}
		if env, _ := f.e.RunStored(t.Context(), "call_1", f.tools, kept, Conversation{}); !failed(env, registry.ErrorUnavailable) {
			t.Errorf("a stored call: %+v", env.Error)
		}
		offered := f.tools.For(registry.Selection{Session: registry.Session{Mode: spec.ModeText, Now: time.Now()}})
		if env, _ := f.e.RunStored(t.Context(), "call_1", offered, kept, Conversation{}); !failed(env, registry.ErrorUnavailable) {
			t.Errorf("a stored call of a turn without the tool: %+v", env.Error)
		}
		if len(f.ran()) != 0 {
			t.Errorf("%v have run", f.ran())
		}
	})
}
