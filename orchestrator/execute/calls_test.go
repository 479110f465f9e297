package execute

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store/storetest"
)

// gate is a tool that runs until it is released or stopped.
type gate chan struct{}

func (g gate) do(ctx context.Context, _ call) (registry.Result, error) {
	select {
	case <-g:
		return registry.Result{Data: "done"}, nil
	case <-ctx.Done():
		return registry.Result{}, context.Cause(ctx)
	}
}

// batch runs n calls named c1, c2, … of a tool.
func (f *fixture) batch(c *Runner, tool string, n int) {
	for i := range n {
		c.Run(f.job(fmt.Sprintf("c%d", i+1), tool, fmt.Sprintf(`{"name":"%d"}`, i+1)))
	}
	synctest.Wait()
}

// TestCancel: a cancel stops only its own call, if the tool allows it and the call is not an
// approved one.
func TestCancel(t *testing.T) {
	for name, tc := range map[string]struct {
		tool              string
		approved, stopped bool
	}{
		"cancellable": {"stop", false, true}, "not": {"look", false, false}, "approved": {"pay", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				g := make(gate)
				f.do = g.do
				c := f.talk("s1", "ada")
				j := f.job("c1", tc.tool, `{"name":"1"}`)
				if tc.approved {
					j.Reference = "REF"
				}
				c.Run(j)
				c.Run(f.job("c2", "stop", `{"name":"2"}`))
				synctest.Wait()
				c.Cancel("c1")
				c.Cancel("nobody")
				synctest.Wait()
				if env, ok := f.answer("s1", "c1"); ok != tc.stopped || ok && !failed(env, registry.ErrorInternal) {
					t.Errorf("stopped=%t: %+v", ok, env)
				}
				if _, ok := f.answer("s1", "c2"); ok {
					t.Error("another call was stopped")
				}
				close(g)
			})
		})
	}
}

// TestEnd: at the end of a session, cancellable calls stop and new ones do not begin; other calls finish, as do
// approved ones, before or after.
func TestEnd(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		g := make(gate)
		f.do = g.do
		c := f.talk("s1", "ada")
		for _, j := range []calls.Run{f.job("c1", "stop", `{"name":"stopped"}`), f.job("c2", "look", `{"name":"goes on"}`), f.job("c3", "look", `{"name":"too"}`), f.job("c4", "look", `{"name":"too"}`)} {
			c.Run(j)
		}
		synctest.Wait()
		c.End()
		synctest.Wait()
		c.Run(f.job("late", "look", `{"name":"late"}`))
		synctest.Wait()
		approved := f.job("c6", "pay", `{"name":"approved"}`)
		approved.Reference = "REF"
		c.Run(approved)
		synctest.Wait()
		if _, ok := f.answer("s1", "c2"); ok {
			t.Error("a call that cannot be stopped was")
		}
		close(g)
		c.Wait()
		got := f.ran()
		if len(got) != 5 || slices.Contains(got, "late") || got[4] != "approved" {
			t.Errorf("%v have begun", got)
		}
		for call, ok := range map[string]bool{"c1": false, "c2": true, "c3": true, "c4": true, "c6": true} {
			if env, has := f.answer("s1", call); !has || env.OK != ok {
				t.Errorf("%s: %+v", call, env)
			}
		}
	})
}

// TestCloseHasGrace: Close waits for running calls during the grace, then stops them; calls that have not begun never
// do.
func TestCloseHasGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		takes, closes time.Duration
		ok            bool
	}{
		"quick":   {3 * time.Second, 3 * time.Second, true},
		"endless": {time.Hour, 7 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{Grace: 7 * time.Second}, func(t *testing.T, f *fixture) {
				f.do = func(ctx context.Context, _ call) (registry.Result, error) {
					select {
					case <-time.After(tc.takes):
						return registry.Result{}, nil
					case <-ctx.Done():
						return registry.Result{}, context.Cause(ctx)
					}
				}
				c := f.talk("s1", "ada")
				c.Run(f.job("c1", "look", `{"name":"1"}`))
				synctest.Wait()
				began := time.Now()
				f.e.Close()
				if took := time.Since(began); took != tc.closes {
					t.Errorf("Close took %s, want %s", took, tc.closes)
				}
				c.Wait()
				if env, _ := f.answer("s1", "c1"); env.OK != tc.ok {
					t.Errorf("answered %+v", env)
				}
				if env := f.run(c, f.job("c2", "look", `{"name":"late"}`)); !failed(env, registry.ErrorInternal) {
					t.Errorf("after Close: %+v", env)
				}
				f.ledger.Before = func(context.Context, storetest.Op, string) error { t.Error("the ledger was asked"); return nil }
				if env := f.run(c, f.job("c3", "book", `{"name":"late"}`)); !failed(env, registry.ErrorInternal) || env.Error.PartialSideEffects || len(f.ledger.Entries()) != 0 {
					t.Errorf("a side effect after Close: %+v", env)
				}
				if got := f.ran(); len(got) != 1 {
					t.Errorf("%v have begun", got)
				}
				f.e.Close() // again
			})
		})
	}
}

// TestBegunWhileClosing: Close also waits for a call that begins while it waits for another, even if the other one
// caused it.
func TestBegunWhileClosing(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		g := make(gate)
		f.do = g.do
		c := f.talk("s1", "ada")
		c.Run(f.job("c1", "look", `{"name":"1"}`))
		synctest.Wait()
		closed := make(chan struct{}) // by the goroutine below, when Close has returned
		go func() { f.e.Close(); close(closed) }()
		pass(time.Second)
		c.Run(f.job("c2", "look", `{"name":"2"}`))
		synctest.Wait()
		g <- struct{}{} // ends one of the two
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for the other call")
		default:
		}
		g <- struct{}{}
		<-closed
		c.Wait()
		for _, call := range []string{"c1", "c2"} {
			if env, _ := f.answer("s1", call); !env.OK {
				t.Errorf("%s: %+v", call, env)
			}
		}
	})
}

// TestUnresponsiveHandler: the call is answered when it times out or is stopped; the handler is abandoned.
func TestUnresponsiveHandler(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		g := make(gate)
		f.do = func(context.Context, call) (registry.Result, error) { <-g; return registry.Result{Data: "late"}, nil }
		defer close(g)
		c := f.talk("s1", "ada")
		c.Run(f.job("c1", "stop", `{"name":"1"}`))
		synctest.Wait()
		c.Cancel("c1")
		synctest.Wait()
		if env, ok := f.answer("s1", "c1"); !ok || !failed(env, registry.ErrorInternal) {
			t.Errorf("stopped: %t %+v", ok, env)
		}
		began := time.Now()
		if env := f.run(c, f.job("c2", "look", `{"name":"2"}`)); !failed(env, registry.ErrorTransient) || time.Since(began) != time.Minute {
			t.Errorf("after %s: %+v", time.Since(began), env)
		}
	})
}

// TestPanicIsAnAnswer: a panic of a handler is an answer of its call alone.
func TestPanicIsAnAnswer(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		f.do = func(context.Context, call) (registry.Result, error) { panic("a secret") }
		c := f.talk("s1", "ada")
		f.batch(c, "look", 6)
		for i := range 6 {
			env, ok := f.answer("s1", fmt.Sprintf("c%d", i+1))
			if !ok || !failed(env, registry.ErrorInternal) || env.Error.PartialSideEffects {
				t.Errorf("c%d: %+v", i+1, env)
			}
		}
	})
}

// TestHandlersSeeTheirSession: with the turn and the time of the call.
func TestHandlersSeeTheirSession(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		var got registry.Session
		f.do = func(_ context.Context, c call) (registry.Result, error) {
			got = c.Session
			return registry.Result{}, nil
		}
		j := f.job("c1", "look", `{}`)
		j.Turn = 7
		f.run(f.talk("s1", "ada"), j)
		want := registry.Session{ID: "s1", UserID: "ada", ConversationID: "conv", Agent: "default", Vouched: true, Scopes: []string{"hr"}, Mode: spec.ModeVoice, Turn: 7, Call: "c1", Now: time.Now().UTC(), ToolsVersion: f.tools.Version()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWhenHandlersBegin: a call that waits for its ledger entry begins after it. A call that did not run has no
// beginning.
func TestWhenHandlersBegin(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		asked := time.Now()
		f.do = func(context.Context, call) (registry.Result, error) {
			pass(time.Second)
			return registry.Result{}, nil
		}
		f.ledger.Before = func(_ context.Context, op storetest.Op, _ string) error {
			pass(30 * time.Millisecond)
			return nil
		}
		c := f.talk("s1", "ada")
		f.batch(c, "look", 4)
		c.Run(f.job("book", "book", `{"name":"table"}`))
		c.Wait()
		c.Run(f.job("again", "book", `{"name":"table"}`))
		c.Wait()
		c.End()
		c.Run(f.job("late", "look", `{}`))
		c.Run(f.job("late writer", "book", `{"name":"late"}`))
		c.Wait()
		for call, want := range map[string]time.Duration{
			"c1": 0, "c4": 0, "book": 30 * time.Millisecond, "again": -1, "late": -1, "late writer": -1,
		} {
			r := f.finished["s1"+call]
			if want < 0 && !r.BegunAt.IsZero() || want >= 0 && r.BegunAt.Sub(asked) != want {
				t.Errorf("%s began after %s, want %s (never: -1ns): %+v", call, r.BegunAt.Sub(asked), want, r.Envelope)
			}
		}
	})
}
