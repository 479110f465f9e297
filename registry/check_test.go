package registry

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/registry/spec"
)

// checked is a writing tool with the given check.
func checked(t testing.TB, check func(context.Context, Call[none, none]) error, ran *int) *Prepared {
	t.Helper()
	e, opts, _ := simple(t, func(context.Context, Call[none, none]) (Result, error) { *ran++; return Result{}, nil }, writes, `category: "action"`, `timeoutMs: 1000`, `latencyBudgetMs: 100`)
	opts.Handlers["probe"] = Bind(func(context.Context, Call[none, none]) (Result, error) { *ran++; return Result{}, nil }, check)
	p, refused := mustLoad(t, opts, e).Snapshot().Prepare("probe", spec.ModeText, json.RawMessage(`{}`))
	if refused != nil {
		t.Fatalf("%s", refused.Encode())
	}
	return p
}

// TestCheck: a refusal by the tool's own check is an answer before the user is asked, and again before the call runs;
// it looks like a handler's error, and nothing has changed.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		check func(context.Context, Call[none, none]) error
		want  ErrorType // empty: the check passes
	}{
		"good":    {func(context.Context, Call[none, none]) error { return nil }, ""},
		"refused": {func(context.Context, Call[none, none]) error { return Errorf(ErrorValidation, "It is over already.") }, ErrorValidation},
		"in part": {func(context.Context, Call[none, none]) error {
			return &ToolError{Type: ErrorConflict, PartialSideEffects: true}
		}, ErrorConflict},
		"another error": {func(context.Context, Call[none, none]) error { return errors.New("secret") }, ErrorInternal},
		"a panic":       {func(context.Context, Call[none, none]) error { panic("secret") }, ErrorInternal},
		"with the time": {func(_ context.Context, c Call[none, none]) error { return Errorf(ErrorValidation, "%s", c.Session.Now) }, ErrorValidation},
	} {
		t.Run(name, func(t *testing.T) {
			ran := 0
			p := checked(t, tc.check, &ran)
			s := Session{Now: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
			before := p.Check(t.Context(), s)
			after := p.Run(t.Context(), s)
			checkEnvelope(t, after)
			if tc.want == "" {
				if before != nil || !after.OK || ran != 1 {
					t.Errorf("%+v %+v, ran %d times", before, after, ran)
				}
				return
			}
			if before == nil || ran != 0 || after.OK {
				t.Fatalf("%+v %+v, ran %d times", before, after, ran)
			}
			checkEnvelope(t, *before)
			for _, env := range []Envelope{*before, after} {
				if env.Error.Type != tc.want || env.Error.PartialSideEffects || strings.Contains(env.Error.Message, "secret") || env.Meta.Tool != "probe" {
					t.Errorf("%s", env.Encode())
				}
			}
			if name == "with the time" && !strings.Contains(before.Error.Message, "2026-11-20 08:00") {
				t.Errorf("%s", before.Encode())
			}
		})
	}
}

// TestCheckHangs: the check and the call share the tool's time limit.
func TestCheckHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		p := checked(t, func(ctx context.Context, _ Call[none, none]) error { <-ctx.Done(); return ctx.Err() }, &ran)
		for _, ask := range []func() *Envelope{
			func() *Envelope { return p.Check(t.Context(), Session{}) },
			func() *Envelope { env := p.Run(t.Context(), Session{}); return &env },
		} {
			start := time.Now()
			env := ask()
			if env == nil || env.OK || env.Error.Type != ErrorTransient || !env.Error.Retryable || env.Error.PartialSideEffects || ran != 0 || time.Since(start) != time.Second {
				t.Errorf("%+v after %s, ran %d times", env, time.Since(start), ran)
			}
		}
	})
}
