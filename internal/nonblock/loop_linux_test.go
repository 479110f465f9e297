package nonblock

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBusyLoopGivesAway: the connections of an overloaded loop are spread over others, and no data is lost or read twice.
func TestBusyLoopGivesAway(t *testing.T) {
	// A loop that works all the time: on a busy machine none gets so much processor time.
	begun := time.Now()
	spreads(t, func() time.Duration { return time.Since(begun) }, func() {})
}

// TestALoopThatIsBehindGivesAway: also without processor time, when other processes use it.
func TestALoopThatIsBehindGivesAway(t *testing.T) {
	spreads(t, func() time.Duration { return 0 }, func() { <-time.After(time.Millisecond) })
}

// spreads checks that 16 connections do not stay on one loop. worked is its thread's processor time; each is called in
// each turn.
func spreads(t *testing.T, worked func() time.Duration, each func()) {
	t.Helper()
	loops := &Loops{worked: worked, Most: 4}
	connect := listen(t, kind{loops: loops})
	var all []*hearing
	var senders sync.WaitGroup
	var stop atomic.Bool
	for range 16 {
		near, far := connect()
		all = append(all, hear(t, near, each))
		senders.Go(func() {
			for i := 0; !stop.Load(); i++ {
				far.Write([]byte{byte(i)})
				<-time.After(time.Millisecond)
			}
			far.Close()
		})
	}
	spread := func() int {
		loops.mu.Lock()
		defer loops.mu.Unlock()
		n := 0
		for _, l := range loops.loops {
			l.mu.Lock()
			if len(l.slots) > len(l.free) {
				n++
			}
			l.mu.Unlock()
		}
		return n
	}
	for spread() < 2 {
		<-time.After(10 * time.Millisecond) // or the test hangs
	}
	stop.Store(true)
	senders.Wait()
	for _, h := range all {
		<-h.ended
		for i, b := range h.heard.Bytes() {
			if b != byte(i) {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
	}
}

// TestBehindAfterSeveralWindows: a loop counts as behind after it has not waited for several windows, not after one, and is less
// busy again when it waits.
func TestBehindAfterSeveralWindows(t *testing.T) {
	loops := &Loops{worked: func() time.Duration { return 0 }, Most: 2}
	l, other := &loop{all: loops}, &loop{all: loops}
	loops.loops = []*loop{l, other}
	l.slots = make([]*watched, 8)
	now := time.Now()
	l.since = now
	for i, waited := range []time.Duration{0, 0, 0, 0, window / 10, 0, 0, 0, 0, 0, 0, window} {
		now = now.Add(window)
		l.waited = waited
		l.account(now)
		busy, shed := int64(0), 0
		switch i {
		case 9: // the fifth in a row
			busy, shed = allBusy, 2
		case 10: // its effect is not known yet
			busy = allBusy
		}
		if got := l.busy.Load(); got != busy || l.shed != shed {
			t.Errorf("window %d: it is busy %d and sheds %d, want %d and %d", i, got, l.shed, busy, shed)
		}
	}
	// If all loops are behind, none can help.
	other.busy.Store(allBusy)
	for range 9 {
		now = now.Add(window)
		l.account(now)
		if l.shed > 0 {
			t.Error("it sheds to one that is behind as well")
		}
	}
	if l.busy.Load() != allBusy {
		t.Error("it is behind, and does not report it")
	}
}

// TestBusyTime: a loop's busy time increases while its thread computes, and not while it waits.
func TestBusyTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var loops Loops
	begun := loops.threadTime()
	for loops.threadTime() < begun+10*time.Millisecond {
		// or the test hangs
	}
	worked, waited := loops.threadTime(), 100*time.Millisecond
	<-time.After(waited)
	if more := loops.threadTime() - worked; more > waited/2 {
		t.Errorf("%s of %s that were waited for count as work", more, waited)
	}
}

// TestOneTurnPerRound: a connection that requests another turn in each of its own, and also has data to read, gets no
// more turns than the others.
func TestOneTurnPerRound(t *testing.T) {
	connect := listen(t, kind{loops: &Loops{Most: 1}})
	var turns [2]int // on the loop's goroutine
	greedy := make(chan int, 1)
	ready := make(chan struct{})
	for i := range turns {
		near, far := connect()
		if _, err := far.Write([]byte("it is never read")); err != nil {
			t.Fatal(err)
		}
		near.Notify(func() {
			<-ready
			if turns[i]++; i == 0 {
				near.Nudge()
			} else if turns[i] == 100 {
				greedy <- turns[0]
			}
		})
	}
	close(ready)
	if n := <-greedy; n > 102 {
		t.Errorf("it had %d turns, and the other one 100", n)
	}
}
