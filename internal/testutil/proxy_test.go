package testutil

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a proxy with a target that the test plays.
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

// connect makes a connection through the proxy, and returns both of its ends.
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

// isReset waits for the end of a side, which must be RST.
func isReset(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the end is %v, want a reset", err)
	}
}

// left waits until the proxy holds n connections.
func (r *rig) left(n int) {
	r.t.Helper()
	WaitUntil(r.t, "the proxy has let go of its connections", func() bool { return r.p.State().Open == n })
}

func TestPassesOn(t *testing.T) {
	r := newRig(t)
	client, server := r.connect()
	passes(t, client, server)
	// A half that ends leaves the other half open, and nothing is lost at the end.
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
	// A late reader has everything, and then the end.
	late, lateServer := r.connect()
	_ = late.(*net.TCPConn).CloseWrite()
	send(t, lateServer, "end")
	_ = lateServer.Close()
	r.left(0)
	if got, err := io.ReadAll(late); string(got) != "end" || err != nil {
		t.Errorf("a late reader has %q, %v", got, err)
	}
	if s := r.p.State(); s.Accepted != 2 || s.ToTarget != 4 || s.ToClient != 4+1<<20+3 {
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

	// One side alone: the other goes on talking to nobody, until it ends.
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
	r.do(Command{Do: Finish, Way: ToClient})
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client reads %v", err)
	}
	send(t, client, "still here")
	receive(t, server, "still here")
	r.do(Command{Do: Finish})
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the server reads %v", err)
	}
	_, _ = client.Close(), server.Close()
	r.left(0)
}

// TestBlackHole: what is sent is lost for good, and neither side learns of the other's end; a
// later connection works, or meets the same.
func TestBlackHole(t *testing.T) {
	for name, way := range map[string]Way{"both": "", "up": ToTarget, "down": ToClient} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			client, server := r.connect()
			passes(t, client, server)
			r.do(Command{Do: BlackHole, Way: way})
			send(t, client, "lost?")
			send(t, server, "lost?")
			if way == ToTarget {
				receive(t, client, "lost?")
			}
			if way == ToClient {
				receive(t, server, "lost?")
			}
			r.do(Command{Do: Heal}) // does not revive it
			send(t, client, "x")
			other, otherServer := r.connect()
			passes(t, other, otherServer)
			if way != ToClient {
				// The server reads nothing, not even the end of the client, until it gives up.
				read := make(chan error, 1)
				go func() {
					_, err := server.Read(make([]byte, 1))
					read <- err
				}()
				_ = client.Close()
				WaitUntil(t, "the proxy has read the client's end", func() bool { return r.ended(up) })
				_ = server.Close()
				if err := <-read; !errors.Is(err, net.ErrClosed) {
					t.Errorf("the server reads %v", err)
				}
			}
			_, _ = client.Close(), server.Close()
			r.left(1)
		})
	}
	r := newRig(t)
	r.do(Command{Do: BlackHole, Later: true})
	client := r.dial()
	send(t, client, "hello?")
	_ = client.Close()
	WaitUntil(t, "the connection has come and gone", func() bool { s := r.p.State(); return s.Accepted == 1 && s.Open == 0 })
	r.do(Command{Do: Heal})
	passed, server := r.connect()
	passes(t, passed, server)
	if s := r.p.State(); s.Accepted != 2 || s.ToTarget != 4 {
		t.Errorf("%+v", s)
	}
}

// ended reports whether a direction of any connection has ended.
func (r *rig) ended(way int) bool {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	for c := range r.p.conns {
		c.mu.Lock()
		ended := c.lanes[way].ended
		c.mu.Unlock()
		if ended {
			return true
		}
	}
	return false
}

// TestFreeze: what is sent meanwhile comes afterwards, in order, and so does the end.
func TestFreeze(t *testing.T) {
	r := newRig(t)
	client, server := r.connect()
	passes(t, client, server)
	r.do(Command{Do: Freeze})
	send(t, client, "one ")
	send(t, server, "two ")
	_ = client.(*net.TCPConn).CloseWrite()
	if s := r.p.State(); s.ToTarget != 4 || s.ToClient != 4 {
		t.Errorf("frozen, and yet %+v", s)
	}
	r.do(Command{Do: Heal})
	got, err := io.ReadAll(server)
	if string(got) != "one " || err != nil {
		t.Errorf("the server got %q, %v", got, err)
	}
	receive(t, client, "two ")

	// One way, for a time.
	client, server = r.connect()
	r.do(Command{Do: Freeze, Way: ToClient, For: 50 * time.Millisecond})
	began := time.Now()
	send(t, server, "late")
	send(t, client, "at once")
	receive(t, server, "at once")
	receive(t, client, "late")
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("a freeze of 50 ms took %s", took)
	}
	// A new connection waits too.
	r.do(Command{Do: Freeze, Later: true})
	waiting := r.dial()
	send(t, waiting, "ping")
	WaitUntil(t, "the proxy has it", func() bool { return r.p.State().Accepted == 3 })
	r.do(Command{Do: Heal})
	other, err := r.target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	receive(t, other, "ping")
}

// TestAfterBytes: exactly so many bytes pass before the fault, on each connection.
func TestAfterBytes(t *testing.T) {
	r := newRig(t)
	r.do(Command{Do: Finish, Way: ToClient, AfterBytes: 6, Count: ToClient, Later: true})
	for range 2 {
		client, server := r.connect()
		send(t, server, "one")
		receive(t, client, "one")
		send(t, server, "two and three")
		got, err := io.ReadAll(client)
		if string(got) != "two" || err != nil {
			t.Errorf("after the first bytes came %q, %v", got, err)
		}
	}
	r.do(Command{Do: Heal})
	client, server := r.connect()
	send(t, server, "one two three")
	receive(t, client, "one two three")
	r.do(Command{Do: Reset, AfterBytes: 4, Count: ToTarget})
	send(t, client, "four and five")
	isReset(t, client)
}

func TestRefuse(t *testing.T) {
	r := newRig(t)
	client, server := r.connect()
	r.do(Command{Do: Refuse})
	if c, err := net.Dial("tcp", r.p.Addr()); err == nil { // it may be reset before Dial returns
		isReset(t, c)
		_ = c.Close()
	}
	passes(t, client, server)
	r.do(Command{Do: Heal})
	passes(t, client, server)
	other, otherServer := r.connect()
	passes(t, other, otherServer)
}

// TestClose: it ends whatever a connection is in, and waits for it; without a target a client is
// reset.
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
	WaitUntil(t, "the proxy has all", func() bool { return r.p.State().Open == 3 })
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
	WaitUntil(t, "all are there", func() bool { return r.p.State().Open == maxConns })
	if c, err := net.Dial("tcp", r.p.Addr()); err == nil {
		isReset(t, c)
		_ = c.Close()
	}
}

func TestControl(t *testing.T) {
	r := newRig(t)
	srv := httptest.NewServer(r.p.Control())
	defer srv.Close()
	client, server := r.connect()
	passes(t, client, server)
	for body, want := range map[string]string{
		`{"do":"freeze","for_ms":1}`:                          "",
		`{"do":"finish","after_bytes":9,"count":"to_client"}`: "",
		`{"do":"explode"}`:                                    "do is \"explode\"",
		`{"do":"freeze","way":"up"}`:                          "way is \"up\"",
		`{"do":"reset","for_ms":5}`:                           "for_ms has no effect with reset",
		`{"do":"freeze","for_ms":-5}`:                         "for_ms must be from 0",
		`{"do":"reset","after_bytes":5}`:                      "after_bytes needs count",
		`{"do":"reset","count":"to_client"}`:                  "count needs after_bytes",
		`{"do":"reset","later":true}`:                         "later with reset needs",
		`{"do":"heal","way":"both"}`:                          "heal affects the whole proxy",
		`{"do":"heal","x":1}`:                                 "unknown field",
		`{"do":"heal"}{}`:                                     "more than one command",
		``:                                                    "want a JSON object",
		strings.Repeat(" ", 5000):                             "exceeds 4096 bytes",
	} {
		resp, err := http.Post(srv.URL, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if ok := resp.StatusCode == http.StatusNoContent; ok != (want == "") || !strings.Contains(string(said), want) {
			t.Errorf("%s: %d %s, want %q", body, resp.StatusCode, said, want)
		}
	}
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(said) != `{"open":1,"accepted":1,"to_target":4,"to_client":4}`+"\n" {
		t.Errorf("the state is %s", said)
	}
	http.DefaultClient.CloseIdleConnections()
}

func FuzzReadCommand(f *testing.F) {
	f.Add(`{"do":"freeze","way":"to_client","for_ms":3000}`)
	f.Add(`{"do":"reset","after_bytes":9223372036854775807,"count":"to_target","later":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadCommand(strings.NewReader(text))
		if err == nil && (c.check() != nil || c.For < 0 || c.AfterBytes < 0) {
			t.Fatalf("%+v", c)
		}
	})
}

// TestBalance: each connection leads to the target that is named when it is made.
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
