package execute

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// TestRetries: a call of text mode with a transient failure is repeated once, after a pause, if its tool allows it;
// nothing else is repeated.
func TestRetries(t *testing.T) {
	transient := &registry.ToolError{Type: registry.ErrorTransient, Message: "Later.", Retryable: true}
	for name, tc := range map[string]struct {
		mode spec.Mode
		tool string
		err  error
		runs int
	}{
		"text":                    {spec.ModeText, "look", transient, 2},
		"text, writes":            {spec.ModeText, "again", transient, 2},
		"voice":                   {spec.ModeVoice, "look", transient, 1},
		"voice, writes":           {spec.ModeVoice, "again", transient, 1},
		"not idempotent":          {spec.ModeText, "rare", transient, 1},
		"not idempotent, writes":  {spec.ModeText, "wipe", transient, 1},
		"transient, not to retry": {spec.ModeText, "look", &registry.ToolError{Type: registry.ErrorTransient, Message: "No."}, 1},
		"text, timed out":         {spec.ModeText, "look", context.DeadlineExceeded, 2},
		"voice, timed out":        {spec.ModeVoice, "look", context.DeadlineExceeded, 1},
		"another type":            {spec.ModeText, "look", &registry.ToolError{Type: registry.ErrorRateLimit, Message: "No.", Retryable: true}, 1},
		"unexpected":              {spec.ModeText, "look", errors.New("what?"), 1},
		"good":                    {spec.ModeText, "look", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				f.do = func(context.Context, call) (registry.Result, error) {
					pass(100 * time.Millisecond)
					return registry.Result{}, tc.err
				}
				began := time.Now()
				env := f.run(f.talk("s1", "ada"), f.jobIn(tc.mode, "c1", tc.tool, `{}`))
				took := time.Duration(tc.runs)*100*time.Millisecond + time.Duration(tc.runs-1)*250*time.Millisecond
				if got := len(f.ran()); got != tc.runs || time.Since(began) != took {
					t.Errorf("%d runs in %s, want %d in %s", got, time.Since(began), tc.runs, took)
				}
				if env.OK != (tc.err == nil) || env.Meta.DurationMS != int64(tc.runs)*100 {
					t.Errorf("answered %+v", env)
				}
				if got := len(f.ledger.Entries()); tc.tool != "again" && tc.tool != "wipe" && got != 0 || tc.err != nil && got != 0 {
					t.Errorf("%d entries are left in the ledger", got)
				}
			})
		})
	}
}

// TestRetrySucceeds: the answer is that of the second try, with one entry.
func TestRetrySucceeds(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		n := 0
		f.do = func(context.Context, call) (registry.Result, error) {
			if n++; n == 1 {
				return registry.Result{}, &registry.ToolError{Type: registry.ErrorTransient, Message: "Later.", Retryable: true}
			}
			return registry.Result{Data: n}, nil
		}
		env := f.run(f.talk("s1", "ada"), f.jobIn(spec.ModeText, "c1", "again", `{}`))
		if !env.OK || string(env.Data) != "2" || f.only() != "done" {
			t.Errorf("answered %+v", env)
		}
	})
}

// TestNoRetryOnceItIsOver: a call of an ended session is not repeated.
func TestNoRetryOnceItIsOver(t *testing.T) {
	bubble(t, Options{Grace: retryAfter / 4}, func(t *testing.T, f *fixture) {
		f.do = func(context.Context, call) (registry.Result, error) {
			return registry.Result{}, &registry.ToolError{Type: registry.ErrorTransient, Message: "Later.", Retryable: true}
		}
		for i, stop := range []func(*Runner){func(c *Runner) { c.Cancel("c1") }, func(c *Runner) { c.End() }, func(*Runner) { f.e.Close() }} {
			session := fmt.Sprintf("s%d", i)
			c := f.talk(session, "ada")
			began := time.Now()
			c.Run(f.jobIn(spec.ModeText, "c1", "stop", `{}`))
			pass(retryAfter / 4)
			stop(c)
			c.Wait()
			if env, _ := f.answer(session, "c1"); !failed(env, registry.ErrorTransient) || len(f.ran()) != i+1 || time.Since(began) > 2*time.Second {
				t.Errorf("%d: %+v after %s and %d runs", i, env, time.Since(began), len(f.ran()))
			}
		}
	})
}

// TestTimedOutWriteIsNotRepeated: the first run may still write, and its outcome is unknown; so the entry stays
// pending, although the tool is idempotent.
func TestTimedOutWriteIsNotRepeated(t *testing.T) {
	for name, do := range map[string]handler{
		"heeds its context": func(ctx context.Context, _ call) (registry.Result, error) {
			<-ctx.Done()
			return registry.Result{}, fmt.Errorf("writing: %w", ctx.Err())
		},
		"ignores it": func(context.Context, call) (registry.Result, error) {
			pass(time.Hour)
			return registry.Result{Data: "late"}, nil
		},
		"its request is late": func(context.Context, call) (registry.Result, error) {
			return registry.Result{}, fmt.Errorf("writing: %w", context.DeadlineExceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, f *fixture) {
				f.do = do
				c := f.talk("s1", "ada")
				env := f.run(c, f.jobIn(spec.ModeText, "c1", "again", `{}`))
				if !failed(env, registry.ErrorTransient) || !env.Error.PartialSideEffects || len(f.ran()) != 1 {
					t.Errorf("answered %+v after %d runs", env.Error, len(f.ran()))
				}
				if state := f.only(); state != "pending" {
					t.Errorf("the ledger has it as %s", state)
				}
				pass(2 * time.Hour) // of the bubble: for an abandoned handler
			})
		})
	}
}
