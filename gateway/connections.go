package gateway

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"voicegw/config/setting"
	"voicegw/internal/nonblock"
	"voicegw/internal/quota"
)

// ConnectionLimits limits the connections that aren't sessions. Zero numbers mean their defaults.
type ConnectionLimits struct {
	AtOnce     int
	PerAddress int
	// ExemptLoopback and Exempt (proxies, which connect for many clients) are exempt from PerAddress.
	ExemptLoopback bool
	Exempt         []netip.Prefix
}

// Bound limits a listener's TCP connections until they become sessions: beyond the limits the oldest one of the address
// with the most is closed. It also closes connections with ambiguous request framing.
func Bound(ln net.Listener, l ConnectionLimits) *BoundListener {
	b := &BoundListener{Listener: ln, room: quota.NewRoom[netip.Addr](1, 1)}
	b.Limit(l)
	return b
}

// BoundListener is the listener of [Bound].
type BoundListener struct {
	net.Listener

	mu     sync.Mutex // guards the fields below
	limits ConnectionLimits
	room   *quota.Room[netip.Addr]
}

// Limit changes the limits at any time. Connections above them stay until new ones arrive.
func (l *BoundListener) Limit(to ConnectionLimits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = to
	l.room.Limit(cmp.Or(to.AtOnce, setting.Connections), cmp.Or(to.PerAddress, setting.ConnectionsPerAddress))
}

// Accept returns the next connection, and closes another one if there are too many.
func (l *BoundListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Server examines it
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c, nil
	}
	b := &boundConn{TCPConn: tcp, listener: l, framing: &framing{}}
	addr := tcp.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	l.mu.Lock()
	b.member = quota.Member[netip.Addr]{Key: quota.AddressKey(addr), Exempt: l.exempt(addr), Evict: func() { _ = b.Close() }}
	out := l.room.Enter(&b.member)
	l.mu.Unlock()
	if out != nil {
		out.Evict()
	}
	return b, nil
}

// exempt reports whether an address has no limit. The caller must hold mu.
func (l *BoundListener) exempt(addr netip.Addr) bool {
	return l.limits.ExemptLoopback && addr.IsLoopback() ||
		slices.ContainsFunc(l.limits.Exempt, func(p netip.Prefix) bool { return p.Contains(addr) })
}

type boundConn struct {
	*net.TCPConn
	listener *BoundListener
	member   quota.Member[netip.Addr] // guarded by listener.mu
	framing  *framing                 // only for the reading goroutine; nil once the connection isn't HTTP
}

func (c *boundConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	return c.framing.check(p, n, err)
}

func (c *boundConn) Close() error {
	c.leave()
	return c.TCPConn.Close() //nolint:wrapcheck // this is the same connection
}

func (c *boundConn) leave() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.room.Leave(&c.member)
}

func boundOf(c net.Conn) *boundConn {
	if n := nonblock.Under(c); n != nil {
		b, _ := n.Conn.(*boundConn)
		return b
	}
	return nil
}

// upgraded ends the limits of a connection that isn't HTTP any more. No goroutine or loop may read from it yet.
func upgraded(c net.Conn) {
	if b := boundOf(c); b != nil {
		b.leave()
		b.framing = nil
	}
	if p, ok := c.(*plainHTTP); ok {
		p.framing = nil
	}
}

// unsentBytes is what the kernel accepts before the peer's window allows sending: a third of a second of audio at 24
// kHz, which a flush cannot drop.
const unsentBytes = 16 << 10

// limitSendBuffer keeps the kernel's send buffer small where possible, so that a flush can drop queued audio.
func limitSendBuffer(c *nonblock.Conn) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	// On an error the connection is gone, which the session notices.
	_ = raw.Control(func(fd uintptr) { setUnsentLimit(fd, unsentBytes) })
}
