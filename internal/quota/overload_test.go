package quota

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// elapse advances fake time and runs all pending work.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestMemory: sessions are refused near the limit, and accepted again only well below it.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Uint64
		var out bytes.Buffer
		w := NewOverload(OverloadOptions{Memory: func() (uint64, uint64) { return held.Load(), 1000 }, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		defer w.Close()
		for _, step := range []struct {
			held uint64
			over bool
		}{{0, false}, {849, false}, {850, true}, {800, true}, {750, true}, {749, false}, {849, false}, {2000, true}} {
			held.Store(step.held)
			elapse(every)
			is := w.State()
			if is.Over() != step.over || is.Over() && (is.Reason != Memory || is.Since.IsZero()) || is.Share != float64(step.held)/1000 {
				t.Errorf("with %d of 1000: %+v", step.held, is)
			}
		}
		w.Close()
		if n := strings.Count(out.String(), "refusing new sessions"); n != 2 {
			t.Errorf("logged %d times:\n%s", n, out.String())
		}
		if n := strings.Count(out.String(), "accepting sessions again"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, out.String())
		}
	})
}

// TestStore: after a short outage of the store no session is refused; after a long one all are, until the store answers.
func TestStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away, slow atomic.Bool
		w := NewOverload(OverloadOptions{Memory: func() (uint64, uint64) { return 1 << 40, 0 }, Store: func(ctx context.Context) error {
			if slow.Load() {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if away.Load() {
				return errors.New("away")
			}
			return nil
		}})
		defer w.Close()
		away.Store(true)
		elapse(storeAway - every)
		if is := w.State(); is.Over() || is.Share != 0 {
			t.Errorf("a short outage: %+v", is)
		}
		away.Store(false)
		elapse(2 * every)
		slow.Store(true)
		elapse(storeAway + 3*every + askStore)
		if is := w.State(); is.Reason != Store || time.Since(is.Since) > askStore+4*every {
			t.Errorf("a long outage: %+v", is)
		}
		slow.Store(false)
		elapse(2*every + askStore)
		if is := w.State(); is.Over() {
			t.Errorf("it is back: %+v", is)
		}
	})
}

// TestWithoutAWatch: without a Watch nothing is overloaded.
func TestWithoutAWatch(t *testing.T) {
	t.Parallel()
	var w *Watch
	w.Close()
	if w.State().Over() {
		t.Error("it is")
	}
}

// TestCgroup: the kernel's forms of a limit.
func TestCgroup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"max\n": 0, "": 0, "0": 0, "-1": 0, "1073741824\n": 966367641, "9223372036854771712\n": 0, "1e9": 0} {
		if got := cgroupLimit(text); got != want {
			t.Errorf("%q is %d instead of %d", text, got, want)
		}
	}
}

// TestUse: a running program uses some memory.
func TestUse(t *testing.T) {
	t.Parallel()
	if held, _ := Use(); held == 0 || held > 1<<40 {
		t.Errorf("%d bytes", held)
	}
}
