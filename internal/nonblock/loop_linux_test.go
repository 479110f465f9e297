package nonblock

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// listen returns a function that connects, and gives both ends; the near one may be
// watched.
func listen(t testing.TB, loops *Loops) func() (near *Conn, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return func() (*Conn, net.Conn) {
		far, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near, err := Listener{Listener: ln, Loops: loops}.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { near.Close(); far.Close() })
		return near.(*Conn), far
	}
}

// hearing is what a watched connection has heard.
type hearing struct {
	conn  *Conn
	turn  sync.Mutex // held while it listens
	heard bytes.Buffer
	each  func()        // for each turn
	ended chan struct{} // closed when there is nothing more
	err   error         // why
}

// hear has a loop watch conn.
func hear(t testing.TB, conn *Conn, each func()) *hearing {
	t.Helper()
	h := &hearing{conn: conn, each: each, ended: make(chan struct{})}
	if !conn.Notify(conn.Loops().Pick(), h.listen) {
		t.Fatal("the connection cannot be watched")
	}
	return h
}

func (h *hearing) listen() {
	if !h.turn.TryLock() {
		panic("two turns at once")
	}
	defer h.turn.Unlock()
	if h.each != nil {
		h.each()
	}
	for h.err == nil {
		var p [512]byte
		n, err := h.conn.Read(p[:])
		h.heard.Write(p[:n])
		if errors.Is(err, ErrWouldBlock) {
			return
		}
		if h.err = err; err != nil {
			close(h.ended)
		}
	}
}

// TestLoopHearsAll: whatever is sent on many connections is heard on each, in order, up to
// its end, by one goroutine.
func TestLoopHearsAll(t *testing.T) {
	loops := &Loops{}
	connect := listen(t, loops)
	var senders sync.WaitGroup
	var all []*hearing
	const size = 100_000
	for i := range 20 {
		near, far := connect()
		all = append(all, hear(t, near, nil))
		senders.Go(func() {
			for sent := 0; sent < size; sent += 1000 {
				far.Write(bytes.Repeat([]byte{byte(i), byte(sent / 1000)}, 500))
			}
			far.Close()
		})
	}
	senders.Wait()
	for i, h := range all {
		<-h.ended
		if h.err != io.EOF || h.heard.Len() != size {
			t.Errorf("connection %d: heard %d bytes, then %v", i, h.heard.Len(), h.err)
		}
		for at := 0; at < h.heard.Len(); at += 2 {
			if b := h.heard.Bytes(); b[at] != byte(i) || b[at+1] != byte(at/1000) {
				t.Fatalf("connection %d: something else at byte %d", i, at)
			}
		}
	}
}

// TestWatchedWriteDoesNotWait: a peer that reads nothing stops no Write until the bound, is
// seen by Ready, and in the end gets every byte in order from the loop.
func TestWatchedWriteDoesNotWait(t *testing.T) {
	near, far := listen(t, &Loops{})()
	hear(t, near, nil)
	var sent []byte
	for i := 0; near.Ready(); i++ {
		chunk := bytes.Repeat([]byte{byte(i)}, 4096)
		if _, err := near.Write(chunk); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, chunk...)
	}
	for range 8 {
		if _, err := near.Write(bytes.Repeat([]byte{0xee}, 4096)); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, bytes.Repeat([]byte{0xee}, 4096)...)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the bytes came in another order, or not: %v", err)
	}
	for !near.Ready() {
		runtime.Gosched() // the loop has written the last, and notes it
	}
}

// TestWatchedWriteWaitsAtTheBound, and Close ends the wait.
func TestWatchedWriteWaitsAtTheBound(t *testing.T) {
	near, far := listen(t, &Loops{})()
	h := hear(t, near, nil)
	wrote := make(chan int, 1)
	go func() {
		total := 0
		for {
			n, err := near.Write(make([]byte, 4096))
			if err != nil {
				break
			}
			total += n
		}
		wrote <- total
	}()
	got := 0
	for got < 8<<20 {
		n, err := far.Read(make([]byte, 64<<10))
		if err != nil {
			t.Fatal(err)
		}
		got += n
		near.mu.Lock()
		pending := len(near.pending)
		near.mu.Unlock()
		if pending > MaxPending {
			t.Fatalf("%d bytes are pending, more than %d", pending, MaxPending)
		}
	}
	near.Close()
	if total := <-wrote; total < got {
		t.Errorf("%d bytes were written, and %d came", total, got)
	}
	<-h.ended
	if !errors.Is(h.err, net.ErrClosed) {
		t.Errorf("the last turn read %v", h.err)
	}
}

// TestCloseIsTold: whoever closes, within a turn, while one runs or between two, a last
// turn follows, and the other side learns it.
func TestCloseIsTold(t *testing.T) {
	connect := listen(t, &Loops{})
	for _, name := range []string{"between", "within", "while"} {
		near, far := connect()
		running, goOn := make(chan struct{}, 10), make(chan struct{})
		h := hear(t, near, func() {
			switch name {
			case "within":
				near.Close()
			case "while":
				running <- struct{}{}
				<-goOn
			}
		})
		if name != "between" {
			far.Write([]byte("x"))
		}
		switch name {
		case "between":
			near.Close()
		case "while":
			<-running
			near.Close()
			close(goOn)
		}
		<-h.ended
		if !errors.Is(h.err, net.ErrClosed) {
			t.Errorf("%s: the last turn read %v", name, h.err)
		}
		if _, err := io.Copy(io.Discard, far); err != nil && name == "between" {
			t.Errorf("%s: the other side read %v", name, err)
		}
		if _, err := near.Write([]byte("x")); err == nil {
			t.Errorf("%s: a closed connection takes bytes", name)
		}
		near.Nudge() // for nothing
	}
}

// TestNudge gives a turn for nothing.
func TestNudge(t *testing.T) {
	near, _ := listen(t, &Loops{})()
	turns := make(chan struct{}, 10)
	hear(t, near, func() { turns <- struct{}{} })
	for range 3 {
		near.Nudge()
		<-turns
	}
}

// TestLoopEndsWithItsConnections, whoever ends those; goleak would find it.
func TestLoopEndsWithItsConnections(t *testing.T) {
	loops := &Loops{}
	connect := listen(t, loops)
	for i := range 200 {
		near, far := connect()
		h := hear(t, near, nil)
		if i%2 == 0 {
			near.Nudge()
			near.Close()
		} else {
			far.Close()
		}
		<-h.ended
		near.Close()
	}
}

// TestBusyLoopGivesAway: connections that give one loop too much to do are spread over
// others, and nothing of them is lost or heard twice.
func TestBusyLoopGivesAway(t *testing.T) {
	// A loop that works all the time: on a busy machine none gets a processor for so long.
	begun := time.Now()
	spreads(t, func() time.Duration { return time.Since(begun) }, func() {})
}

// TestALoopThatIsBehindGivesAway, though no processor has worked for it: others have them.
func TestALoopThatIsBehindGivesAway(t *testing.T) {
	spreads(t, func() time.Duration { return 0 }, func() { <-time.After(time.Millisecond) })
}

// spreads checks that 16 connections do not stay on one loop. Its thread has worked for so
// long; each is what a connection's turn does.
func spreads(t *testing.T, worked func() time.Duration, each func()) {
	t.Helper()
	loops := &Loops{worked: worked, most: 4}
	connect := listen(t, loops)
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

// TestAMomentIsNotBehind: a loop counts as behind when it has not waited for a while, and
// not for one window, and is less busy again when it waits.
func TestAMomentIsNotBehind(t *testing.T) {
	loops := &Loops{worked: func() time.Duration { return 0 }, most: 2}
	l, other := &Loop{all: loops}, &Loop{all: loops}
	loops.loops = []*Loop{l, other}
	l.slots = make([]*Conn, 8)
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
		case 10: // whether that helps is not known yet
			busy = allBusy
		}
		if got := l.busy.Load(); got != busy || l.shed != shed {
			t.Errorf("window %d: it is busy %d and sheds %d, want %d and %d", i, got, l.shed, busy, shed)
		}
	}
	// Where all are behind, nobody can help.
	other.busy.Store(allBusy)
	for range 9 {
		now = now.Add(window)
		l.account(now)
		if l.shed > 0 {
			t.Error("it sheds to one that is behind as well")
		}
	}
	if l.busy.Load() != allBusy {
		t.Error("it is behind, and does not say so")
	}
}

// TestBusyIsTheThreadsTime: what a loop is busy by passes while its thread computes, and
// does not while it waits.
func TestBusyIsTheThreadsTime(t *testing.T) {
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

// TestUnwatchable connections stay as they are.
func TestUnwatchable(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := Wrap(a)
	defer c.Close()
	if c.Notify((&Loops{}).Pick(), func() {}) || c.Notify(nil, func() {}) {
		t.Error("a pipe is watched")
	}
	near, far := listen(t, nil)()
	if near.Notify(near.Loops().Pick(), func() {}) {
		t.Error("a connection is watched by no loop")
	}
	go far.Write([]byte("hello"))
	if n, err := near.Read(make([]byte, 10)); n != 5 {
		t.Errorf("read %d, %v", n, err)
	}
}

// TestWatchedAllocatesNothing.
func TestWatchedAllocatesNothing(t *testing.T) {
	near, far := listen(t, &Loops{})()
	p, q := make([]byte, 900), make([]byte, 900)
	room := &counted{}
	turns := make(chan struct{}, 1)
	near.Notify(near.Loops().Pick(), func() {
		for {
			n, err := near.TryReadInto(room)
			if errors.Is(err, ErrWouldBlock) || n == 0 {
				return
			}
			near.Write(p)
			turns <- struct{}{}
		}
	})
	if n := testing.AllocsPerRun(200, func() {
		far.Write(p[:60])
		<-turns
		if _, err := io.ReadFull(far, q); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for each turn", n)
	}
}

// TestNobodyHasTwoTurnsInARound: one that asks for another turn in each of its own, and has
// something to read besides, has no more than the others.
func TestNobodyHasTwoTurnsInARound(t *testing.T) {
	loop := (&Loops{}).Pick()
	connect := listen(t, &Loops{})
	var turns [2]int // the loop's
	greedy := make(chan int, 1)
	ready := make(chan struct{})
	for i := range turns {
		near, far := connect()
		if _, err := far.Write([]byte("it is never read")); err != nil {
			t.Fatal(err)
		}
		near.Notify(loop, func() {
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

// TestPausedIsNotRead: what comes after Pause gives no turn and is not read, and that the
// connection breaks is told.
func TestPausedIsNotRead(t *testing.T) {
	connect := listen(t, &Loops{})
	near, far := connect()
	turns := make(chan error, 10)
	paused := false
	near.Notify(near.Loops().Pick(), func() {
		if !paused {
			paused = true
			near.Pause()
		}
		var p [16]byte
		_, err := near.Read(p[:])
		turns <- err
		if err != nil && !errors.Is(err, ErrWouldBlock) {
			near.Close()
		}
	})
	far.Write([]byte("x"))
	if err := <-turns; !errors.Is(err, ErrWouldBlock) {
		t.Fatal("the turn that pauses has read", err)
	}
	far.Write([]byte("y"))
	other, otherFar := connect()
	h := hear(t, other, nil) // on the same loop
	otherFar.Close()
	<-h.ended
	near.Nudge()
	if err := <-turns; !errors.Is(err, ErrWouldBlock) {
		t.Error("the next turn has read", err)
	}
	if n := len(turns); n > 0 {
		t.Errorf("there were %d turns for nothing", n)
	}
	far.(*net.TCPConn).SetLinger(0)
	far.Close()
	if err := <-turns; errors.Is(err, ErrWouldBlock) {
		t.Error("that the connection is broken was not told")
	}
}
