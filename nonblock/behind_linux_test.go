package nonblock

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestLoopThatIsHeldUp: while a turn keeps a loop for seconds, the loops say that they are
// behind, and for a while after that. What waited meanwhile was read late, and the turn that
// reads it says since when it may have waited.
func TestLoopThatIsHeldUp(t *testing.T) {
	var at atomic.Int64 // the time, which passes as the test wants
	at.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	clock := func() time.Time { return time.Unix(0, at.Load()) }
	pass := func(d time.Duration) { at.Add(int64(d)) }
	loops := &Loops{most: 1, clock: clock}
	connect := listen(t, loops)

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
	if !late.Notify(loops.Pick(), func() {
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
	}) {
		t.Fatal("the connection is not watched")
	}
	t.Cleanup(func() { _ = late.Close() })
	if loops.Behind() {
		t.Error("a loop that has nothing to do is behind")
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
	if !loops.Behind() {
		t.Error("a loop that one turn keeps for 7 s is not behind")
	}
	close(release)
	if s := <-turns; s.caughtUp.After(began) || s.now.Sub(s.caughtUp) < 7*time.Second {
		t.Errorf("what came while the loop was held is said to have come %v after that began", s.caughtUp.Sub(began))
	}
	if !loops.Behind() {
		t.Error("the loop is on time again at once")
	}
	// Rounds that are short by the test's time: each is waited for before the next begins.
	for range 4 {
		pass(lateRound)
		if _, err := speaks.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
		for (<-turns).now.Before(clock()) {
		}
	}
	if loops.Behind() {
		t.Error("the loop is behind for ever")
	}
}
