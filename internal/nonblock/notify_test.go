package nonblock

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// kind is a kind of connection with Notify: a socket watched by loops (on Linux), or a connection with a goroutine
// because there are no loops, or because it is no socket.
type kind struct {
	name  string
	loops *Loops
	hides bool // it hides that it is a socket
	pipe  bool // it is in memory
}

// kinds are all kinds. The contract of Notify holds for each.
func kinds() []kind {
	return []kind{
		{name: "a loop's", loops: &Loops{}},
		{name: "a socket without a loop"},
		{name: "a wrapped connection", loops: &Loops{}, hides: true},
		{name: "a pipe", loops: &Loops{}, pipe: true},
	}
}

// watched reports whether a loop watches connections of this kind.
func (k kind) watched() bool {
	return k.loops != nil && !k.hides && !k.pipe && runtime.GOOS == "linux"
}

// each runs a test for each kind of connection and checks for leaks.
func each(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds() {
		before := goleak.IgnoreCurrent()
		t.Run(k.name, func(t *testing.T) { test(t, k) })
		goleak.VerifyNone(t, before)
	}
}

// listen returns a function that connects and returns both ends; the near one has Notify.
func listen(t testing.TB, k kind) func() (near *Conn, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return func() (*Conn, net.Conn) {
		near, far := net.Pipe()
		if !k.pipe {
			if far, err = net.Dial("tcp", ln.Addr().String()); err != nil {
				t.Fatal(err)
			}
			if near, err = ln.Accept(); err != nil {
				t.Fatal(err)
			}
		}
		if k.hides {
			near = struct{ net.Conn }{near}
		}
		conn := k.loops.wrap(near)
		t.Cleanup(func() { conn.Close(); far.Close() })
		return conn, far
	}
}

// hearing is the data that a connection has received.
type hearing struct {
	conn  *Conn
	turn  sync.Mutex // held during a turn
	heard bytes.Buffer
	each  func()        // called in each turn
	ended chan struct{} // closed after the end
	err   error         // the reason of the end
	over  bool          // the last turn is over
}

// hear reads conn in its turns.
func hear(t testing.TB, conn *Conn, each func()) *hearing {
	t.Helper()
	h := &hearing{conn: conn, each: each, ended: make(chan struct{})}
	conn.Notify(h.listen)
	return h
}

func (h *hearing) listen() {
	if !h.turn.TryLock() {
		panic("two turns at once")
	}
	defer h.turn.Unlock()
	if h.over {
		panic("there is a turn after the last")
	}
	if h.each != nil {
		h.each()
	}
	for {
		var p [512]byte
		n, err := h.conn.Read(p[:])
		if n > 0 {
			h.heard.Write(p[:n])
		}
		h.over = err == net.ErrClosed // only this error marks the last turn
		switch {
		case errors.Is(err, ErrWouldBlock):
			return
		case err != nil:
			if h.err == nil {
				h.err = err
				close(h.ended)
			}
			return
		}
	}
}

// TestAllDataIsRead: each of many connections gets all data, in order, up to its end.
func TestAllDataIsRead(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		connect := listen(t, k)
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
				t.Errorf("connection %d: read %d bytes, then %v", i, h.heard.Len(), h.err)
			}
			for at := 0; at < h.heard.Len(); at += 2 {
				if b := h.heard.Bytes(); b[at] != byte(i) || b[at+1] != byte(at/1000) {
					t.Fatalf("connection %d: something else at byte %d", i, at)
				}
			}
		}
	})
}

// TestGoroutinesOfConnections: connections on a loop have no goroutine of their own, and all others have one.
func TestGoroutinesOfConnections(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		near, _ := listen(t, k)()
		told := make(chan string, 1)
		var once sync.Once
		near.Notify(func() {
			once.Do(func() { told <- goroutine() })
		})
		near.Nudge()
		if by := <-told; strings.Contains(by, ".(*loop).run") != k.watched() {
			t.Errorf("it is read by\n%s", by)
		}
	})
}

func goroutine() string {
	p := make([]byte, 16<<10)
	return string(p[:runtime.Stack(p, false)])
}

// TestUnreadDataGetsATurn: data that a turn leaves is read in the next one, even if no more arrives, and at most one
// block is read ahead.
func TestUnreadDataGetsATurn(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		near, far := listen(t, k)()
		bytesOfTurns := make(chan byte, 16)
		near.Notify(func() {
			var p [1]byte
			if n, err := near.Read(p[:]); err == nil && n == 1 {
				bytesOfTurns <- p[0]
			}
		})
		const sent = "a byte a turn"
		if _, err := far.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		for i := range sent {
			if got := <-bytesOfTurns; got != sent[i] {
				t.Fatalf("turn %d has read %q", i, got)
			}
		}
	})
}

// TestAPeerWaitsForAReaderThatIsSlow: unread data stays in the kernel, so the peer can write no more than the kernel
// accepts.
func TestAPeerWaitsForAReaderThatIsSlow(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		near, far := listen(t, k)()
		goOn, held := make(chan struct{}), make(chan struct{})
		var once sync.Once
		h := hear(t, near, func() {
			once.Do(func() { close(held); <-goOn })
		})
		const size = 16 << 20 // far more than sockets hold
		wrote := make(chan int, 1)
		go func() {
			n, _ := far.Write(make([]byte, size))
			far.Close()
			wrote <- n
		}()
		<-held
		select {
		case <-wrote:
			t.Error("the peer has written everything, and nothing was read")
		default:
		}
		close(goOn)
		<-h.ended
		if n := <-wrote; n != size || h.heard.Len() != size {
			t.Errorf("%d bytes were sent, and %d read, of %d", n, h.heard.Len(), size)
		}
	})
}

// TestWriteDoesNotWaitWithNotify: a peer that reads nothing blocks no Write up to the limit; Ready reports it, and in the
// end it gets every byte in order.
func TestWriteDoesNotWaitWithNotify(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		near, far := listen(t, k)()
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
			t.Errorf("the bytes are missing or in another order: %v", err)
		}
		for !near.Ready() {
			runtime.Gosched() // the last block has been written, and is noted
		}
	})
}

// TestWriteWaitsAtTheBoundWithNotify: a Write at the limit waits, and Close ends it.
func TestWriteWaitsAtTheBoundWithNotify(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		near, far := listen(t, k)()
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
			t.Errorf("%d bytes were written, and %d arrived", total, got)
		}
		<-h.ended
		if !errors.Is(h.err, net.ErrClosed) {
			t.Errorf("the last turn read %v", h.err)
		}
	})
}

// TestCloseGivesALastTurn: after Close, in a turn, during one, between two or before the first, a last turn follows, and
// the other side notices.
func TestCloseGivesALastTurn(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		connect := listen(t, k)
		for _, name := range []string{"before", "between", "within", "while"} {
			near, far := connect()
			if name == "before" {
				near.Close()
			}
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
			switch name {
			case "between":
				near.Close()
			case "within":
				far.Write([]byte("x"))
			case "while":
				far.Write([]byte("x"))
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
				t.Errorf("%s: a closed connection accepts bytes", name)
			}
			if err := near.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: closing again: %v", name, err)
			}
			near.Nudge() // without effect
		}
	})
}

// TestNudge: Nudge causes a turn without data.
func TestNudge(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		near, _ := listen(t, k)()
		turns := make(chan struct{}, 10)
		hear(t, near, func() { turns <- struct{}{} })
		for range 3 {
			near.Nudge()
			<-turns
		}
	})
}

// TestATurnMayAskForAnother: the goroutine of the turn then runs the next one.
func TestATurnMayAskForAnother(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		near, _ := listen(t, k)()
		left := 1000
		over := make(chan struct{})
		hear(t, near, func() {
			if left--; left > 0 {
				near.Nudge()
			} else if left == 0 {
				close(over)
			}
		})
		near.Nudge()
		<-over
	})
}

// TestNoGoroutineIsLeft: many connections, ended by either side and nudged at the same time, leave no goroutine.
func TestNoGoroutineIsLeft(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		connect := listen(t, k)
		for i := range 200 {
			near, far := connect()
			h := hear(t, near, nil)
			var nudges sync.WaitGroup
			for range 4 {
				nudges.Go(near.Nudge)
			}
			if i%2 == 0 {
				near.Close()
			} else {
				far.Close()
			}
			<-h.ended
			nudges.Wait()
			near.Close()
		}
	})
}

// TestAFailedReadIsNotRepeated: with a goroutine, f is not called repeatedly after the end of the connection.
func TestAFailedReadIsNotRepeated(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		if k.watched() {
			t.Skip("a loop calls until the connection is closed, as it must be then")
		}
		near, far := listen(t, k)()
		turns := make(chan error, 10)
		near.Notify(func() {
			_, err := near.Read(make([]byte, 1))
			turns <- err
		})
		far.Close()
		if err := <-turns; err != io.EOF {
			t.Errorf("the end was reported as %v", err)
		}
		near.Nudge()
		if err := <-turns; err != io.EOF {
			t.Errorf("the next turn has read %v", err)
		}
		near.Close()
		if err := <-turns; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the last turn has read %v", err)
		}
		if n := len(turns); n > 0 {
			t.Errorf("there were %d unnecessary turns", n)
		}
	})
}

// TestPausedIsNotRead: data after Pause causes no turn and is not read. A loop still reports that the connection breaks.
func TestPausedIsNotRead(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		connect := listen(t, k)
		near, far := connect()
		turns := make(chan error, 10)
		paused := false
		near.Notify(func() {
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
		if !k.pipe { // a pipe accepts it only when it is read
			far.Write([]byte("y"))
		}
		other, otherFar := connect()
		h := hear(t, other, nil) // on the same loop
		otherFar.Close()
		<-h.ended
		near.Nudge()
		if err := <-turns; !errors.Is(err, ErrWouldBlock) {
			t.Error("the next turn has read", err)
		}
		if n := len(turns); n > 0 {
			t.Errorf("there were %d unnecessary turns", n)
		}
		if !k.watched() {
			return
		}
		far.(*net.TCPConn).SetLinger(0)
		far.Close()
		if err := <-turns; errors.Is(err, ErrWouldBlock) {
			t.Error("the broken connection was not reported")
		}
	})
}

// TestNotifyAllocatesNothing: turns of sockets allocate nothing.
func TestNotifyAllocatesNothing(t *testing.T) {
	for _, k := range kinds()[:2] {
		around := echo(t, k)
		if n := testing.AllocsPerRun(200, around); n != 0 {
			t.Errorf("%s: %v allocations for each turn", k.name, n)
		}
	}
}

// BenchmarkTurn measures a message of 60 bytes and an answer of 900 from the turn that has read it.
func BenchmarkTurn(b *testing.B) {
	for _, k := range kinds()[:2] {
		b.Run(k.name, func(b *testing.B) {
			around := echo(b, k)
			b.ReportAllocs()
			for b.Loop() {
				around()
			}
		})
	}
}

// echo returns a function that sends data to a connection that answers in its turns.
func echo(t testing.TB, k kind) (around func()) {
	t.Helper()
	near, far := listen(t, k)()
	p, q := make([]byte, 900), make([]byte, 900)
	room := &counted{}
	near.Notify(func() {
		for {
			if n, err := near.TryReadInto(room); err != nil || n == 0 {
				return
			}
			near.Write(p)
		}
	})
	return func() {
		far.Write(p[:60])
		if _, err := io.ReadFull(far, q); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNotifyTwice: a second call of Notify panics.
func TestNotifyTwice(t *testing.T) {
	near, _ := listen(t, kind{})()
	near.Notify(func() {})
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	near.Notify(func() {})
}
