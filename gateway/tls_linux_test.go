package gateway

import (
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"voicegw/internal/nonblock"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// TestSessionsOverTLSAreOnTheFastPath: loops read them without a goroutine per session, the kernel queues little for
// them, and they no longer count as connections.
func TestSessionsOverTLSAreOnTheFastPath(t *testing.T) {
	s := secure(t, ConnectionLimits{})
	dial := func() *protocol.Conn {
		c, err := protocol.Dial(t.Context(), s.url+"/v1/voice", protocol.DialOptions{Client: s.client(t, true)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Abort)
		say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000})
		if m, ok := hear(t, c).(*protocol.SessionStarted); !ok {
			t.Fatalf("the gateway answered %+v", m)
		}
		return c
	}
	first := dial() // the goroutines that it starts serve all
	before := runtime.NumGoroutine()
	const more = 40
	for range more {
		dial()
	}
	// One of each fake model remains.
	testutil.WaitUntil(t, "no connection has a goroutine", func() bool { return runtime.NumGoroutine() < before+more+more/4 })
	say(t, first, &protocol.Ping{T: 1})
	if m, ok := hear(t, first).(*protocol.Pong); !ok {
		t.Errorf("the first session was answered %+v", m)
	}
	if n := s.bound.inside(); n != 0 {
		t.Errorf("%d connections are bounded", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		under := nonblock.Under(c)
		if under == nil || !under.Ready() || under.Loops() == nil {
			t.Fatalf("a session is over %T", c)
		}
		if n := unsent(t, under); n != unsentBytes {
			t.Fatalf("the kernel queues up to %d unsent bytes, want %d", n, unsentBytes)
		}
	}
}

// unsent returns TCP_NOTSENT_LOWAT of a connection that a loop watches. It finds it by its addresses, because the
// connection no longer shows its descriptor.
func unsent(t *testing.T, c *nonblock.Conn) int {
	t.Helper()
	for fd := range 4096 {
		peer, err := unix.Getpeername(fd)
		if err != nil {
			continue
		}
		if in, ok := peer.(*unix.SockaddrInet4); ok && in.Port == c.RemoteAddr().(*net.TCPAddr).Port {
			own, err := unix.Getsockname(fd)
			if in, ok := own.(*unix.SockaddrInet4); err != nil || !ok || in.Port != c.LocalAddr().(*net.TCPAddr).Port {
				continue
			}
			n, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the connection's socket was not found")
	return 0
}
