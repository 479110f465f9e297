package testutil

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// toldOnce is a test that fails without ending the one around it.
type toldOnce struct {
	testing.TB
	what string
}

func (t *toldOnce) Helper() {}

func (t *toldOnce) Fatalf(format string, args ...any) {
	t.what = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failing runs wait on a goroutine of its own and returns how it failed.
func failing(t *testing.T, wait func(testing.TB)) string {
	in, over := &toldOnce{TB: t}, make(chan struct{})
	go func() {
		defer close(over)
		wait(in)
	}()
	<-over
	return in.what
}

// TestWhatHappensIsAwaited: however long it takes, up to the limit.
func TestWhatHappensIsAwaited(t *testing.T) {
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

// TestWhatNeverHappensIsTold: with its name, and not before the limit.
func TestWhatNeverHappensIsTold(t *testing.T) {
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
		"nothing comes":    {func(t testing.TB) { WaitNext(t, "snow", make(chan int)) }, "it never came: snow", WaitLimit},
		"the sender ended": {func(t testing.TB) { WaitNext(t, "snow", closed) }, "the channel is closed: snow", 0},
		"no end":           {func(t testing.TB) { WaitClosed(t, "snow", make(chan int)) }, "it never ended: snow", WaitLimit},
		"a value":          {func(t testing.TB) { WaitClosed(t, "snow", full) }, "7 came instead of the end: snow", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				if got := failing(t, tc.wait); !strings.Contains(got, tc.want) {
					t.Errorf("it says %q, want %q", got, tc.want)
				}
				if took := time.Since(began); took < tc.at || took > tc.at+time.Second {
					t.Errorf("after %s, want %s", took, tc.at)
				}
			})
		})
	}
}
