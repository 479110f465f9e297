package nonblock

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestStuckLoopIsBehind: while a turn blocks a loop for seconds, and shortly after that, the loops report that they are
// behind. The turn that reads delayed data reports since when it may have waited.
func TestStuckLoopIsBehind(t *testing.T) {
	var at atomic.Int64 // the time, set by the test
	at.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	clock := func() time.Time { return time.Unix(0, at.Load()) }
	pass := func(d time.Duration) { at.Add(int64(d)) }
	loops := &Loops{Most: 1, Clock: clock}
	connect := listen(t, kind{loops: loops})

	holder, wakes := connect()
	held, release := make(chan struct{}), make(chan struct{}) // closed by the turn, and by the test
	hear(t, holder, func() {
		select {
		case <-held:
		default:
			close(held)
			<-release
		}
	})
	late, speaks := connect()
	type seen struct{ caughtUp, now time.Time }
	turns := make(chan seen, 64)
	late.Notify(func() {
		var p [64]byte
		for read := 0; ; {
			n, err := late.Read(p[:])
			if read += n; err == nil {
				continue
			}
			if read > 0 {
				turns <- seen{late.CaughtUp(), clock()}
			}
			return
		}
	})
	t.Cleanup(func() { _ = late.Close() })
	if loops.Lateness().Behind {
		t.Error("an idle loop is behind")
	}
	// A minute in which the late connection's client sends nothing, and the loop has rounds.
	ticker, ticks := connect()
	ticked := make(chan struct{}, 1024)
	ticker.Notify(func() {
		var p [64]byte
		for {
			n, err := ticker.Read(p[:])
			if err != nil {
				return
			}
			for range n {
				ticked <- struct{}{}
			}
		}
	})
	t.Cleanup(func() { _ = ticker.Close() })
	for range 60 {
		pass(time.Second)
		if _, err := ticks.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		<-ticked
	}
	if _, err := wakes.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-held
	began := clock()
	if _, err := speaks.Write([]byte("spoken meanwhile")); err != nil {
		t.Fatal(err)
	}
	pass(7 * time.Second)
	if late := loops.Lateness(); !late.Behind || late.Longest < 7*time.Second || late.Since.After(began) {
		t.Errorf("a loop blocked by a turn for 7 s is reported as %+v", late)
	}
	close(release)
	if s := <-turns; s.caughtUp.After(began) || s.caughtUp.Before(began.Add(-3*time.Second)) || s.now.Sub(s.caughtUp) < 7*time.Second {
		t.Errorf("data that arrived while the loop was stuck is reported as later than %v after the beginning", s.caughtUp.Sub(began))
	}
	if late := loops.Lateness(); !late.Behind || late.Longest < 7*time.Second || late.Since.After(began) {
		t.Errorf("a loop that was blocked for 7 s is reported at once as %+v", late)
	}
	// Rounds that are short by the test's clock: each is waited for before the next begins.
	for range 4 {
		pass(lateRound)
		if _, err := speaks.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
		for (<-turns).now.Before(clock()) {
		}
	}
	if loops.Lateness().Behind {
		t.Error("the loop is behind for ever")
	}
}

// TestLatenessIsReported: Changed is called once when a loop has fallen behind, even while the loop is stuck, and once
// when it has caught up, with the details.
func TestLatenessIsReported(t *testing.T) {
	var at atomic.Int64
	at.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	clock := func() time.Time { return time.Unix(0, at.Load()) }
	told := make(chan Lateness, 16)
	loops := &Loops{Most: 1, every: time.Millisecond, Clock: clock, Changed: func(l Lateness) { told <- l }}
	connect := listen(t, kind{loops: loops})
	holder, wakes := connect()
	held, release := make(chan struct{}), make(chan struct{})
	hear(t, holder, func() {
		select {
		case <-held:
		default:
			close(held)
			<-release
		}
	})
	if _, err := wakes.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-held
	began := clock()
	at.Add(int64(3 * time.Second))
	if late := <-told; !late.Behind || late.Longest < 3*time.Second || late.Since.After(began) {
		t.Errorf("reported while the loop is stuck: %+v", late)
	}
	at.Add(int64(4 * time.Second))
	loops.looks() // and Changed is not called again
	if n := len(told); n > 0 {
		t.Errorf("reported %d times more that the loop is stuck", n)
	}
	close(release)
	loop := loops.loops[0]
	for loop.late.Load() == nil {
		runtime.Gosched() // until the loop has noted the end of its round
	}
	for range 4 { // rounds that are short by the test's clock
		round := loop.beat.Load()
		at.Add(int64(lateRound))
		if _, err := wakes.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		for loop.beat.Load() == round {
			runtime.Gosched()
		}
	}
	if late := <-told; late.Behind || late.Longest < 7*time.Second || late.Since.After(began) {
		t.Errorf("reported after the loop has caught up: %+v", late)
	}
	if n := len(told); n > 0 {
		t.Errorf("reported %d times too often", n)
	}
}
