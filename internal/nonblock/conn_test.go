package nonblock

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns both ends of a TCP connection, the first of them wrapped.
func pair(t testing.TB) (*Conn, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := Listener{Listener: ln}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near.(*Conn), far
}

// TestWriteDoesNotWait: a peer that reads nothing blocks no Write up to the limit; Ready reports it, and in the end it
// gets every byte in order.
func TestWriteDoesNotWait(t *testing.T) {
	near, far := pair(t)
	var sent []byte
	for i := 0; near.Ready(); i++ {
		chunk := bytes.Repeat([]byte{byte(i)}, 4096)
		if n, err := near.Write(chunk); err != nil || n != len(chunk) {
			t.Fatalf("wrote %d, %v", n, err)
		}
		sent = append(sent, chunk...)
	}
	for range 8 { // pending now, and still not waiting
		if _, err := near.Write(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, make([]byte, 4096)...)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(far, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Error("the bytes are in another order")
	}
}

// TestWriteWaitsAtTheBound: pending bytes are limited; a Write beyond waits until there is room.
func TestWriteWaitsAtTheBound(t *testing.T) {
	near, far := pair(t)
	wrote := make(chan int, 1)
	go func() {
		total := 0
		for range 4096 { // 16 MB, far more than socket and limit hold
			n, err := near.Write(make([]byte, 4096))
			if err != nil {
				break
			}
			total += n
		}
		wrote <- total
	}()
	for i := 0; i < 16<<20; {
		n, err := far.Read(make([]byte, 64<<10))
		if err != nil {
			t.Fatal(err)
		}
		i += n
		near.mu.Lock()
		pending := len(near.pending)
		near.mu.Unlock()
		if pending > MaxPending {
			t.Fatalf("%d bytes are pending, more than %d", pending, MaxPending)
		}
	}
	if total := <-wrote; total != 16<<20 {
		t.Errorf("%d bytes were written", total)
	}
}

// TestCloseEndsWaitingWrites: Close unblocks a Write at the limit, and leaves no goroutine (goleak).
func TestCloseEndsWaitingWrites(t *testing.T) {
	near, _ := pair(t)
	failed := make(chan error, 1)
	go func() {
		for {
			if _, err := near.Write(make([]byte, 64<<10)); err != nil {
				failed <- err
				return
			}
		}
	}()
	for near.Ready() {
	}
	near.Close()
	if err := <-failed; err == nil {
		t.Error("no error after Close")
	}
	if _, err := near.Write([]byte("x")); err == nil {
		t.Error("a closed connection accepts bytes")
	}
}

// TestCloseWhileWriting: after any order of the two calls no drainer starts once Close has waited for it.
func TestCloseWhileWriting(t *testing.T) {
	for range 200 {
		a, b := net.Pipe() // no socket: every write needs the drainer
		c := Wrap(a)
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			for {
				if _, err := c.Write([]byte("x")); err != nil {
					return
				}
			}
		}()
		go io.Copy(io.Discard, b)
		c.Close()
		<-wrote
		c.mu.Lock()
		if c.draining {
			t.Error("a drainer runs after Close")
		}
		c.mu.Unlock()
		b.Close()
	}
}

// TestWriteAllocatesNothing: Write allocates nothing while the peer reads fast enough.
func TestWriteAllocatesNothing(t *testing.T) {
	near, far := pair(t)
	p, q := make([]byte, 900), make([]byte, 900)
	if n := testing.AllocsPerRun(200, func() {
		if _, err := near.Write(p); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(far, q); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for each write", n)
	}
}

// stub is a connection that is never used.
type stub struct{ net.Conn }

// TestClientKeepsTheDialer: Client copies the transport and wraps the connections of its dialer.
func TestClientKeepsTheDialer(t *testing.T) {
	for name, base := range map[string]*http.Transport{
		"DialContext": {DialContext: func(context.Context, string, string) (net.Conn, error) { return stub{}, nil }},
		"Dial":        {Dial: func(string, string) (net.Conn, error) { return stub{}, nil }},
	} {
		c, err := Client(&http.Client{Transport: base}, nil).Transport.(*http.Transport).DialContext(t.Context(), "tcp", "nowhere.invalid:1")
		if n, ok := c.(*Conn); err != nil || !ok || n.Conn != (stub{}) {
			t.Errorf("%s: dialled %T, %v", name, c, err)
		}
	}
}

// counted is a Room that counts its calls.
type counted struct {
	buf         [64]byte
	asked, back int
}

func (c *counted) Room() []byte { c.asked++; return c.buf[:] }
func (c *counted) GiveBack()    { c.back++ }

// TestRoomIsReturned: while no data arrives, the connection holds no buffer of the room.
func TestRoomIsReturned(t *testing.T) {
	near, far := pair(t)
	room := &counted{}
	for range 3 {
		go far.Write([]byte("hello"))
		n, err := near.ReadInto(room)
		if err != nil || string(room.buf[:n]) != "hello" {
			t.Fatalf("read %q, %v", room.buf[:n], err)
		}
		if room.asked != room.back+1 {
			t.Errorf("taken %d times, returned %d times", room.asked, room.back)
		}
		room.asked, room.back = 0, 0
	}
	far.Close()
	if n, err := near.ReadInto(room); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	near.Close()
	if _, err := near.ReadInto(room); err == nil || err == io.EOF {
		t.Errorf("after Close: %v", err)
	}
}

// TestCloseEndsReadInto: Close ends a waiting ReadInto.
func TestCloseEndsReadInto(t *testing.T) {
	near, _ := pair(t)
	ended := make(chan error, 1)
	go func() {
		_, err := near.ReadInto(&counted{})
		ended <- err
	}()
	near.Close()
	if err := <-ended; err == nil {
		t.Error("no error after Close")
	}
}

func TestReadIntoAllocatesNothing(t *testing.T) {
	near, far := pair(t)
	p, room := make([]byte, 64), &counted{}
	if n := testing.AllocsPerRun(200, func() {
		if _, err := far.Write(p); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < len(p); {
			n, err := near.ReadInto(room)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
	}); n != 0 {
		t.Errorf("%v allocations for each read", n)
	}
}

// TestMakeRoom: MakeRoom waits like a Write, and after it no Write waits; a Write without it fails when too much is
// pending, and so does every later one.
func TestMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := Wrap(near)
		defer c.Close()
		big := make([]byte, 3*MaxPending)
		if err := c.MakeRoom(len(big)); err != nil {
			t.Fatal(err)
		}
		for _, half := range [][]byte{big[:MaxPending], big[MaxPending:]} {
			if n, err := c.Write(half); n != len(half) || err != nil {
				t.Fatal(n, err)
			}
			synctest.Wait() // the drainer has taken the first half
		}
		var room sync.WaitGroup
		var made atomic.Bool
		room.Go(func() {
			if err := c.MakeRoom(10); err != nil {
				t.Error(err)
			}
			made.Store(true)
		})
		synctest.Wait()
		if made.Load() {
			t.Error("there is room although the peer has read nothing")
		}
		if _, err := io.ReadFull(far, make([]byte, len(big))); err != nil {
			t.Fatal(err)
		}
		room.Wait()
		c.Flush()
		if !c.Ready() {
			t.Error("something is pending after Flush")
		}
		var err error
		written := 0
		for err == nil && written < 4*MaxPending {
			_, err = c.Write(make([]byte, 1000))
			written += 1000
			synctest.Wait() // the drainer has the first bytes; bytes that it takes late would not be pending
		}
		if !errors.Is(err, ErrFull) || written > 2*MaxPending+10_000 {
			t.Errorf("after %d bytes: %v", written, err)
		}
		if _, err := c.Write([]byte{1}); !errors.Is(err, ErrFull) {
			t.Errorf("then: %v", err)
		}
		c.Flush() // it returns because nothing will be written
	})
}

// TestUnder: Under finds a Conn below other wrappers, or nil.
func TestUnder(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := Wrap(near)
	for name, tc := range map[string]struct {
		over net.Conn
		want *Conn
	}{
		"itself": {c, c}, "under TLS": {tls.Client(c, nil), c}, "under both": {struct{ *tls.Conn }{tls.Client(c, nil)}, c},
		"another": {near, nil}, "TLS over another": {tls.Client(near, nil), nil}, "nil": {nil, nil},
	} {
		if got := Under(tc.over); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
