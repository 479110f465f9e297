package kb

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// asked is an Embedder that counts its calls and answers with answer.
type asked struct {
	calls  int
	answer func(ctx context.Context) ([][]float32, error)
}

func (a *asked) Embed(ctx context.Context, _ []string) ([][]float32, error) {
	a.calls++
	return a.answer(ctx)
}

func fails(context.Context) ([][]float32, error) { return nil, errors.New("no such host") }

func answers(v ...float32) func(context.Context) ([][]float32, error) {
	return func(context.Context) ([][]float32, error) { return [][]float32{v}, nil }
}

func TestFailuresAreLoggedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := newGuard(&asked{answer: fails}, slog.New(slog.NewTextHandler(&log, nil)), "query", 0, 0)
		for range 90 {
			if v := g.Query(t.Context(), "a", 0); v != nil {
				t.Errorf("a vector %v of a failure", v)
			}
			<-time.After(time.Second)
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("%d lines in ninety seconds:\n%s", n, &log)
		}
		if !strings.Contains(log.String(), "no such host") || !strings.Contains(log.String(), "failures=61") {
			t.Errorf("the log is\n%s", &log)
		}
		if g.count.Load() != 90 {
			t.Errorf("%d failures", g.count.Load())
		}
	})
}

func TestPauseAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &asked{answer: fails}
		g := newGuard(e, nil, "query", 0, 10*time.Second)
		g.Query(t.Context(), "a", 0)
		g.Query(t.Context(), "a", 0)
		<-time.After(9 * time.Second)
		g.Query(t.Context(), "a", 0)
		if e.calls != 1 || g.count.Load() != 3 {
			t.Errorf("%d calls, %d failures", e.calls, g.count.Load())
		}
		<-time.After(time.Second)
		e.answer = answers(1, 0)
		if v := g.Query(t.Context(), "a", 2); v == nil || e.calls != 2 {
			t.Errorf("%v after %d calls", v, e.calls)
		}
	})
}

func TestHangingEmbedder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(&asked{answer: func(ctx context.Context) ([][]float32, error) { <-ctx.Done(); return nil, ctx.Err() }}, nil, "query", time.Second, 0)
		began := time.Now()
		if v := g.Query(t.Context(), "a", 0); v != nil || time.Since(began) != time.Second || g.count.Load() != 1 {
			t.Errorf("%v after %v, %d failures", v, time.Since(began), g.count.Load())
		}
	})
}

func TestCancelledCallIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := newGuard(&asked{answer: func(ctx context.Context) ([][]float32, error) { return nil, ctx.Err() }}, nil, "query", 0, time.Hour)
	if v := g.Query(ctx, "a", 0); v != nil || g.count.Load() != 0 || g.resting() {
		t.Errorf("%v, %d failures", v, g.count.Load())
	}
}

func TestInvalidVectorsAreAFailure(t *testing.T) {
	for name, e := range map[string]*asked{
		"dimensions": {answer: answers(1, 2, 3)},
		"zero":       {answer: answers(0, 0)},
		"none":       {answer: func(context.Context) ([][]float32, error) { return nil, nil }},
	} {
		g := newGuard(e, nil, "query", 0, 0)
		if v := g.Query(t.Context(), "a", 2); v != nil {
			t.Errorf("%s: %v", name, v)
		}
		if v := g.Records(t.Context(), []string{"a"}, 2); v != nil {
			t.Errorf("%s: %v", name, v)
		}
		if g.count.Load() != 2 {
			t.Errorf("%s: %d failures", name, g.count.Load())
		}
	}
	var _ Embedder = (*asked)(nil)
}
