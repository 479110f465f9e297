package testutil

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failRecorder records a failure without failing the real test.
type failRecorder struct {
	testing.TB
	what string
}

func (t *failRecorder) Helper() {}

func (t *failRecorder) Fatalf(format string, args ...any) {
	t.what = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failing runs wait on its own goroutine and returns its failure.
func failing(t *testing.T, wait func(testing.TB)) string {
	in, over := &failRecorder{TB: t}, make(chan struct{})
	go func() {
		defer close(over)
		wait(in)
	}()
	<-over
	return in.what
}

// TestAwait: the functions wait for an event until the limit.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, ch, end := time.Now().Add(WaitLimit-time.Second), make(chan int), make(chan int)
		WaitUntil(t, "it is late", func() bool { return !time.Now().Before(late) })
		time.AfterFunc(WaitLimit-time.Second, func() { ch <- 7 })
		if got := WaitNext(t, "a number", ch); got != 7 {
			t.Errorf("got %d", got)
		}
		time.AfterFunc(WaitLimit-time.Second, func() { close(end) })
		WaitClosed(t, "the end", end)
	})
}

// TestAwaitFails: a failure has the name of the event, and does not occur before the limit.
func TestAwaitFails(t *testing.T) {
	closed := make(chan int)
	close(closed)
	full := make(chan int, 1)
	full <- 7
	for name, tc := range map[string]struct {
		wait func(testing.TB)
		want string
		at   time.Duration
	}{
		"never true":       {func(t testing.TB) { WaitUntil(t, "snow", func() bool { return false }) }, "it never happened: snow", WaitLimit},
		"no value":         {func(t testing.TB) { WaitNext(t, "snow", make(chan int)) }, "it never came: snow", WaitLimit},
		"the sender ended": {func(t testing.TB) { WaitNext(t, "snow", closed) }, "the channel is closed: snow", 0},
		"not closed":       {func(t testing.TB) { WaitClosed(t, "snow", make(chan int)) }, "it never ended: snow", WaitLimit},
		"a value":          {func(t testing.TB) { WaitClosed(t, "snow", full) }, "7 came instead of the end: snow", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				if got := failing(t, tc.wait); !strings.Contains(got, tc.want) {
					t.Errorf("failure %q, want %q", got, tc.want)
				}
				if took := time.Since(began); took < tc.at || took > tc.at+time.Second {
					t.Errorf("after %s, want %s", took, tc.at)
				}
			})
		})
	}
}
