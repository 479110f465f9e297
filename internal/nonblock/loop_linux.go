package nonblock

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Two half busy loops wake up twice as often as one busy loop, so connections are concentrated on few loops. A loop's
// load is its thread's processor time, not the elapsed time of its work: if other programs take the processor for a
// moment, a second loop would only compete with the first. But a loop that does not wait for several windows is behind,
// whatever the reason, and a second loop gets its own share of the processors. Loads and waits are thousandths of a
// window.
const (
	window    = 100 * time.Millisecond
	busyLoop  = 500  // at this load, a loop gets no new connections while others have less
	fullLoop  = 800  // at this load, it gives connections away
	allBusy   = 1000 // the load of a loop that is behind
	waitLeast = 50   // a loop that waits less than this in a window was busy all the time;
	behind    = 5    // after this many such windows, it is behind
	shedPart  = 4    // a full loop gives away a quarter of its connections,
	shedLeast = 200  // only to a loop whose load is lower by at least this
)

// A wake-up costs as much as reading a frame. So a loop with at least denseTurns in a window that had less than napTurns
// in its last round takes a nap first, to find more.
const (
	denseTurns = 300
	napTurns   = 8
)

// Go's monitor takes the processor from a goroutine that has run for 10 ms, even in a system call, and then looks again
// every 20 µs for a while (sysmon and retake in runtime/proc.go, Go 1.26). With few sessions, that costs more than their
// work. So a loop lets the scheduler run more often than that.
const yieldAfter = 8 * time.Millisecond

var nap = unix.Timespec{Nsec: (500 * time.Microsecond).Nanoseconds()}

// Loops is a set of at most one loop for each processor. A loop's goroutine exists only while the loop has connections.
// The zero value is ready for use. Loops may be used concurrently.
type Loops struct {
	// Changed, if not nil, is called within a second after the loops have fallen behind or caught up; then Behind is
	// false and the other fields describe the past. There is one call at a time. It must not wait for a loop.
	Changed func(Lateness)
	// Clock measures lateness; nil means the real clock. It is for tests.
	Clock func() time.Time
	// Most is the maximum number of loops; zero means one for each processor. It is for tests.
	Most int

	// Fixed; zero except in tests.
	worked func() time.Duration // the processor time of this thread; nil asks the kernel
	every  time.Duration        // the interval of looks; 0 means lookEvery

	rounds rounds // of all loops

	mu    sync.Mutex // guards the fields below
	loops []*loop
	look  *time.Timer // calls looks; nil while no loop runs
	last  Lateness    // the result of the last check
}

func (l *Loops) pick() *loop {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, loop := range l.loops {
		if loop.busy.Load() < busyLoop {
			return loop
		}
	}
	return l.least()
}

// least returns a new loop, or the least busy one if there are Most loops. The caller must hold mu.
func (l *Loops) least() *loop {
	most := l.Most
	if most == 0 {
		most = min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	}
	if len(l.loops) < most {
		loop := &loop{all: l}
		l.loops = append(l.loops, loop)
		return loop
	}
	return slices.MinFunc(l.loops, func(a, b *loop) int { return int(a.busy.Load() - b.busy.Load()) })
}

// relief returns a loop for connections of a loop with the load busy, or nil.
func (l *Loops) relief(busy int64) *loop {
	l.mu.Lock()
	defer l.mu.Unlock()
	if loop := l.least(); loop.busy.Load()+shedLeast <= busy {
		return loop
	}
	return nil
}

// loop watches connections on one goroutine, and gives turns to those with something to read. See [Conn.Notify].
type loop struct {
	all *Loops // fixed

	busy atomic.Int64               // in the last window
	beat atomic.Int64               // the end of its last wait, Unix ns; 0 while it does not run
	late atomic.Pointer[lateRounds] // the last ones; nil before the first

	// Owned by the goroutine.
	since  time.Time     // the start of the window
	worked time.Duration // the thread's processor time at since
	waited time.Duration // waiting time for events after since
	turns  int           // after since
	dense  bool          // there were denseTurns in the last window
	full   int           // the latest consecutive windows in which it has hardly waited
	shed   int           // connections to give away
	to     *loop         // the loop that gets them
	round  uint64        // counts waits; from 1
	woken  time.Time     // the end of the last wait
	told   time.Time     // the start of the last wait that returned all connections with something to read
	seen   time.Time     // the same without the last wait

	mu      sync.Mutex // guards the fields below
	running bool       // the goroutine runs; then poll and wake are open
	poll    int        // epoll(7)
	wake    int        // eventfd(2)
	awake   bool       // wake has an unread value
	slots   []*watched // by the id of their events; nil for a free slot
	free    []int32    // of slots
	nudged  []*watched
}

// wakeID is the id of wake's events; those of connections are their slots.
const wakeID = -1

// interest returns the events to ask the kernel for. It always reports broken connections.
func interest(slot int32, read, write bool) unix.EpollEvent {
	event := unix.EpollEvent{Fd: slot}
	if read {
		event.Events = unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if write {
		event.Events |= unix.EPOLLOUT
	}
	return event
}

// attach starts to watch a connection for reading and writing as requested, and returns its slot.
func (l *loop) attach(w *watched, read, write bool) (slot int32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running {
		if err := l.start(); err != nil {
			return 0, err
		}
	}
	if n := len(l.free); n > 0 {
		slot = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		slot = int32(len(l.slots))
		l.slots = append(l.slots, nil)
	}
	l.slots[slot] = w
	event := interest(slot, read, write)
	if err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, w.fd, &event); err != nil {
		l.slots[slot] = nil
		l.free = append(l.free, slot)
		return 0, os.NewSyscallError("epoll_ctl", err)
	}
	return slot, nil
}

func (l *loop) start() error {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: wakeID})
	}
	if err != nil {
		return errors.Join(os.NewSyscallError("eventfd", err), unix.Close(poll))
	}
	l.poll, l.wake, l.running = poll, wake, true
	l.beat.Store(l.all.now().UnixNano())
	l.all.watch()
	go l.run(poll)
	return nil
}

func (l *loop) want(w *watched, read, write bool) error {
	event := interest(w.slot, read, write)
	l.mu.Lock()
	defer l.mu.Unlock()
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.poll, unix.EPOLL_CTL_MOD, w.fd, &event))
}

// detach removes a connection that the kernel no longer watches. The loop ends after the last one.
func (l *loop) detach(slot int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots[slot] = nil
	l.free = append(l.free, slot)
	if len(l.free) == len(l.slots) {
		l.rouse()
	}
}

// nudge gives a connection a turn soon, after those that the kernel reports.
func (l *loop) nudge(w *watched) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nudged = append(l.nudged, w)
	l.rouse()
}

// rouse ends a wait. The caller must hold mu.
func (l *loop) rouse() {
	if l.awake || !l.running {
		return
	}
	l.awake = true
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(l.wake, one[:]) // cannot fail: awake allows one write before each read
}

type turn struct {
	w      *watched
	events uint32
	nudged bool
}

const maxTurns = 256

// run gives turns until no connection is left.
func (l *loop) run(poll int) {
	// The kernel measures processor time per thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := time.Now()
	l.told, l.seen = time.Time{}, time.Time{}
	l.since, l.worked, l.waited, l.full, l.shed = now, l.all.threadTime(), 0, 0, 0
	events := make([]unix.EpollEvent, maxTurns)
	turns := make([]turn, 0, maxTurns)
	yielded := now
	for {
		if now.Sub(yielded) >= yieldAfter {
			runtime.Gosched()
			now = time.Now()
			yielded = now
		}
		began := now
		if l.all.Clock != nil {
			began = l.all.Clock()
		}
		if l.dense && len(turns) < napTurns {
			_ = unix.Nanosleep(&nap, nil) // it may be shorter
		}
		n, err := unix.EpollWait(poll, events, int(longestNap.Milliseconds()))
		if err != nil {
			n = 0 // EINTR: no other error is possible
		}
		l.woke(began, err == nil && n < maxTurns)
		woke := time.Now()
		l.waited += woke.Sub(now)
		l.round++
		var ok bool
		if turns, ok = l.due(turns[:0], events[:max(n, 0)]); !ok {
			return
		}
		for i, t := range turns {
			turns[i] = turn{}
			t.w.turn(l, t)
			if l.shed > 0 && t.w.move(l, l.to) {
				l.shed--
			}
		}
		l.turns += len(turns)
		now = time.Now()
		l.all.rounds.add(now.Sub(woke))
		l.account(now)
	}
}

// account measures the loop's load at the end of a window, and sheds connections if it is too high.
func (l *loop) account(now time.Time) {
	length := now.Sub(l.since)
	if length < window {
		return
	}
	worked := l.all.threadTime()
	busy := int64(1000 * (worked - l.worked) / length)
	if l.full++; 1000*l.waited/length >= waitLeast {
		l.full = 0
	}
	if l.full >= behind {
		busy = allBusy
	}
	l.busy.Store(busy)
	l.dense, l.turns = l.turns >= denseTurns, 0
	l.since, l.worked, l.waited = now, worked, 0
	l.shed = 0
	// A loop that is behind waits for the effect before it sheds again.
	if busy >= fullLoop && (l.full < behind || l.full%behind == 0) {
		if l.to = l.all.relief(busy); l.to != nil {
			l.mu.Lock()
			l.shed = (len(l.slots) - len(l.free)) / shedPart
			l.mu.Unlock()
		}
	}
}

func (l *Loops) threadTime() time.Duration {
	if l.worked != nil {
		return l.worked()
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // only before Linux 2.6.12
	}
	return time.Duration(t.Nano())
}

// due returns the due turns. When no connection is left, it closes the loop and returns false.
func (l *loop) due(turns []turn, events []unix.EpollEvent) ([]turn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		if e.Fd == wakeID {
			var count [8]byte
			_, _ = unix.Read(l.wake, count[:])
			l.awake = false
			continue
		}
		if w := l.slots[e.Fd]; w != nil {
			turns = append(turns, turn{w: w, events: e.Events})
		}
	}
	for i, w := range l.nudged {
		turns = append(turns, turn{w: w, events: unix.EPOLLIN, nudged: true})
		l.nudged[i] = nil
	}
	l.nudged = l.nudged[:0]
	switch {
	case len(l.free) < len(l.slots):
		return turns, true
	case len(turns) > 0: // for connections that are closed
		l.rouse()
		return turns, true
	}
	_ = unix.Close(l.wake)
	_ = unix.Close(l.poll)
	l.busy.Store(0)
	l.beat.Store(0)
	l.running, l.awake, l.slots, l.free, l.nudged = false, false, nil, nil, nil
	return nil, false
}
