package e2e

import (
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"voicegw/gateway"
	"voicegw/internal/nonblock"
	"voicegw/internal/testutil"
)

// cutter closes all its connections at once.
type cutter struct {
	mu    sync.Mutex // guards the following fields
	conns []net.Conn
	ends  map[ends]bool // of the TCP connections in conns
	over  bool
}

// ends are the addresses of a TCP connection.
type ends struct{ here, there netip.AddrPort }

// add registers an unused connection and returns it.
func (c *cutter) add(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		_ = conn.Close()
		return conn
	}
	c.conns = append(c.conns, conn)
	here, isTCP := conn.LocalAddr().(*net.TCPAddr)
	if there, ok := conn.RemoteAddr().(*net.TCPAddr); ok && isTCP {
		if c.ends == nil {
			c.ends = map[ends]bool{}
		}
		c.ends[ends{here.AddrPort(), there.AddrPort()}] = true
	}
	return conn
}

// now ends all connections, present and future, at once, without closing them: a close waits for readers and writers.
// Sockets are found by address, because a connection in a loop has another descriptor.
func (c *cutter) now() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if len(c.ends) > 0 {
		shutSockets(func(e ends) bool { return c.ends[e] })
	}
	for _, conn := range c.conns {
		if _, ok := conn.LocalAddr().(*net.TCPAddr); !ok {
			_ = conn.Close()
		}
	}
}

func (c *cutter) close() {
	c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// shutSockets shuts down matching TCP connections of the process in both directions.
func shutSockets(which func(ends) bool) {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		panic(err) // the test cannot run without it
	}
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// An error means a closed descriptor or one of another kind.
		here, err := unix.Getsockname(fd)
		if err != nil {
			continue
		}
		there, err := unix.Getpeername(fd)
		if err != nil {
			continue
		}
		if which(ends{addrPort(here), addrPort(there)}) {
			_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		}
	}
}

// addrPort returns the address of a TCP socket; zero for others.
func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// cutListener registers its connections with a cutter.
type cutListener struct {
	net.Listener
	cut *cutter
}

func (l cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.cut.add(c), nil
}

// TestCutLoopConnection: a connection in a loop is cut at once.
func TestCutLoopConnection(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{}
	listener := cutListener{gateway.Listen(ln, gateway.NewLoops(nil)), c}
	defer listener.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.(*nonblock.Conn).Notify(func() {})
	c.now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if said, err := io.ReadAll(peer); len(said) > 0 || err != nil {
			t.Errorf("the peer got %q, %v", said, err)
		}
	}()
	testutil.WaitClosed(t, "the peer's connection", ended)
	c.close()
}
