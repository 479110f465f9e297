package testutil

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a proxy whose target is the test.
type rig struct {
	t      *testing.T
	p      *Proxy
	target net.Listener
}

func newRig(t *testing.T) *rig {
	t.Helper()
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Listen("127.0.0.1:0", target.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close()
		if err := p.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		_ = target.Close()
	})
	return &rig{t, p, target}
}

// connect makes a connection through the proxy, and returns both ends.
func (r *rig) connect() (client, server net.Conn) {
	r.t.Helper()
	client = r.dial()
	server, err := r.target.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = server.Close() })
	return client, server
}

func (r *rig) dial() net.Conn {
	r.t.Helper()
	client, err := net.Dial("tcp", r.p.Addr())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = client.Close() })
	return client
}

func (r *rig) do(c Command) {
	r.t.Helper()
	if err := r.p.Do(c); err != nil {
		r.t.Fatal(err)
	}
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != want {
		t.Fatalf("received %q, %v; want %q", buf, err, want)
	}
}

// passes checks that both directions work.
func passes(t *testing.T, client, server net.Conn) {
	t.Helper()
	send(t, client, "ping")
	receive(t, server, "ping")
	send(t, server, "pong")
	receive(t, client, "pong")
}

// isReset waits for the end of a connection, which must be RST.
func isReset(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the end is %v, want a reset", err)
	}
}

type state struct{ open, accepted int }

func (r *rig) state() state {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	return state{len(r.p.conns), r.p.accepted}
}

// left waits until the proxy holds n connections.
func (r *rig) left(n int) {
	r.t.Helper()
	WaitUntil(r.t, "the proxy has closed its connections", func() bool { return r.state().open == n })
}

func TestPassesOn(t *testing.T) {
	r := newRig(t)
	client, server := r.connect()
	passes(t, client, server)
	// A half-close leaves the other direction open, and loses no data.
	big := bytes.Repeat([]byte("x"), 1<<20)
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the server reads %v", err)
	}
	go func() {
		_, _ = server.Write(big)
		_ = server.Close()
	}()
	got, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	r.left(0)
	// A late reader gets all data, then the end.
	late, lateServer := r.connect()
	_ = late.(*net.TCPConn).CloseWrite()
	send(t, lateServer, "end")
	_ = lateServer.Close()
	r.left(0)
	if got, err := io.ReadAll(late); string(got) != "end" || err != nil {
		t.Errorf("a late reader has %q, %v", got, err)
	}
	if s := r.state(); s.accepted != 2 {
		t.Errorf("%+v", s)
	}
}

func TestReset(t *testing.T) {
	r := newRig(t)
	client, server := r.connect()
	passes(t, client, server)
	r.do(Command{Do: Reset})
	isReset(t, client)
	isReset(t, server)
	r.left(0)

	// A reset of one side alone leaves the other open.
	client, server = r.connect()
	passes(t, client, server)
	r.do(Command{Do: Reset, Way: ToClient})
	isReset(t, client)
	send(t, server, "is anybody there?")
	r.left(1)
	_ = server.Close()
	r.left(0)

	// The peer's own reset reaches the other side.
	client, server = r.connect()
	passes(t, client, server)
	reset(client.(*net.TCPConn))
	isReset(t, server)
}

func TestFinish(t *testing.T) {
	r := newRig(t)
	client, server := r.connect()
	passes(t, client, server)
	r.do(Command{Do: Finish})
	send(t, client, "lost")
	for _, side := range []net.Conn{client, server} {
		if _, err := side.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a side reads %v", err)
		}
	}
	_, _ = client.Close(), server.Close()
	r.left(0)
}

// TestBlackHole: the proxy drops all data permanently, and neither side learns that the other closed. The fault applies to
// existing or to later connections.
func TestBlackHole(t *testing.T) {
	r := newRig(t)
	client, server := r.connect()
	passes(t, client, server)
	r.do(Command{Do: BlackHole})
	send(t, client, "lost?")
	send(t, server, "lost?")
	r.do(Command{Do: Heal}) // has no effect on existing connections
	send(t, client, "x")
	other, otherServer := r.connect()
	passes(t, other, otherServer)
	// The server gets neither data nor the client's end.
	read := make(chan error, 1)
	go func() {
		_, err := server.Read(make([]byte, 1))
		read <- err
	}()
	_ = client.Close()
	passes(t, other, otherServer)
	_ = server.Close()
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server reads %v", err)
	}
	r.left(1)
	r = newRig(t)
	r.do(Command{Do: BlackHole, Later: true})
	client = r.dial()
	send(t, client, "hello?")
	_ = client.Close()
	WaitUntil(t, "the connection has opened and closed", func() bool { s := r.state(); return s.accepted == 1 && s.open == 0 })
	r.do(Command{Do: Heal})
	passed, server := r.connect()
	passes(t, passed, server)
	if s := r.state(); s.accepted != 2 {
		t.Errorf("%+v", s)
	}
}

// TestFreeze: the proxy delivers data and the end after the freeze, in order.
func TestFreeze(t *testing.T) {
	r := newRig(t)
	client, server := r.connect()
	passes(t, client, server)
	r.do(Command{Do: Freeze})
	send(t, client, "one ")
	send(t, server, "two ")
	_ = client.(*net.TCPConn).CloseWrite()
	arrived := make(chan int, 1)
	go func() {
		n, _ := server.Read(make([]byte, 1))
		arrived <- n
	}()
	select {
	case <-arrived:
		t.Error("data passes a frozen connection")
	case <-time.After(20 * time.Millisecond):
	}
	r.do(Command{Do: Heal})
	<-arrived // the first byte
	got, err := io.ReadAll(server)
	if string(got) != "ne " || err != nil {
		t.Errorf("the server got %q, %v", got, err)
	}
	receive(t, client, "two ")

	// A freeze with a duration.
	client, server = r.connect()
	r.do(Command{Do: Freeze, For: 50 * time.Millisecond})
	began := time.Now()
	send(t, server, "late")
	receive(t, client, "late")
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("a freeze of 50 ms took %s", took)
	}
	// A new connection waits too.
	r.do(Command{Do: Freeze, Later: true})
	waiting := r.dial()
	send(t, waiting, "ping")
	WaitUntil(t, "the proxy has accepted it", func() bool { return r.state().accepted == 3 })
	r.do(Command{Do: Heal})
	other, err := r.target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	receive(t, other, "ping")
}

// TestAfterBytes: exactly AfterBytes bytes pass before the fault, on each connection.
func TestAfterBytes(t *testing.T) {
	r := newRig(t)
	r.do(Command{Do: Finish, AfterBytes: 6, Count: ToClient, Later: true})
	for range 2 {
		client, server := r.connect()
		send(t, server, "one")
		receive(t, client, "one")
		send(t, server, "two and three")
		got, err := io.ReadAll(client)
		if string(got) != "two" || err != nil {
			t.Errorf("then received %q, %v", got, err)
		}
	}
	r.do(Command{Do: Heal})
	client, server := r.connect()
	send(t, server, "one two three")
	receive(t, client, "one two three")
	r.do(Command{Do: Reset, AfterBytes: 4, Count: ToTarget})
	send(t, client, "four and five")
	isReset(t, client)
	for _, wrong := range []Command{{}, {Do: "explode"}, {Do: Reset, AfterBytes: 1}, {Do: Reset, Count: ToClient}} {
		if r.p.Do(wrong) == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

// TestClose: Close ends connections in every state, and waits for them. A client without a target is reset.
func TestClose(t *testing.T) {
	r := newRig(t)
	frozen, frozenServer := r.connect()
	passes(t, frozen, frozenServer)
	r.do(Command{Do: Freeze})
	send(t, frozen, "x")
	lost, lostServer := r.connect()
	passes(t, lost, lostServer)
	r.do(Command{Do: Freeze, Later: true})
	waiting := r.dial()
	WaitUntil(t, "the proxy has accepted all", func() bool { return r.state().open == 3 })
	if err := r.p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{frozen, lost, waiting} {
		isReset(t, c)
	}
	alone := newRig(t)
	_ = alone.target.Close()
	if c, err := net.Dial("tcp", alone.p.Addr()); err == nil { // it may be reset before Dial returns
		isReset(t, c)
		_ = c.Close()
	}
}

func TestBounded(t *testing.T) {
	r := newRig(t)
	r.do(Command{Do: BlackHole, Later: true})
	for range maxConns {
		r.dial()
	}
	WaitUntil(t, "all are open", func() bool { return r.state().open == maxConns })
	if c, err := net.Dial("tcp", r.p.Addr()); err == nil {
		isReset(t, c)
		_ = c.Close()
	}
}

// TestBalance: the proxy asks for the target of each new connection.
func TestBalance(t *testing.T) {
	var targets []net.Listener
	for range 2 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		targets = append(targets, ln)
	}
	var turn atomic.Int32
	p, err := Balance("127.0.0.1:0", func() string { return targets[(turn.Add(1)-1)%2].Addr().String() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	for i := range 4 {
		client, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		server, err := targets[i%2].Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.Close(), server.Close()
	}
}
