package gateway

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"

	"voicegw/config/setting"
	"voicegw/internal/nonblock"
	"voicegw/internal/quota"
)

// ConnectionLimits bound the connections that are not sessions. A zero number means its
// default.
type ConnectionLimits struct {
	// AtOnce is how many there may be. Zero means defaults.Connections.
	AtOnce int
	// PerAddress is how many of them may come from one address. Zero means
	// defaults.ConnectionsPerAddress.
	PerAddress int
	// ExemptLoopback exempts this machine's own addresses from PerAddress, and Exempt other
	// ones: those of proxies, which connect for many clients.
	ExemptLoopback bool
	Exempt         []netip.Prefix
}

// Bound returns a listener whose TCP connections are bounded until they become sessions. A new
// connection is always let in; if there are too many, the oldest one of the address with the
// most connections is closed. So idle connections do not keep others out.
//
// It also ends connections whose requests say in two ways where they end.
func Bound(ln net.Listener, l ConnectionLimits) *BoundListener {
	b := &BoundListener{Listener: ln, room: quota.NewRoom[netip.Addr](1, 1)}
	b.Limit(l)
	return b
}

// BoundListener is the listener of [Bound].
type BoundListener struct {
	net.Listener

	mu     sync.Mutex // guards the following fields
	limits ConnectionLimits
	room   *quota.Room[netip.Addr]
}

// Limit sets other limits. Connections beyond them stay until new ones come. It may be called at any time.
func (l *BoundListener) Limit(to ConnectionLimits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = to
	l.room.Limit(cmp.Or(to.AtOnce, setting.Connections), cmp.Or(to.PerAddress, setting.ConnectionsPerAddress))
}

// Accept returns the next connection, and closes another one if it needs the room.
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
	b.guest = quota.Guest[netip.Addr]{Key: quota.AddressKey(addr), Exempt: l.exempt(addr), Evict: func() { _ = b.Close() }}
	out := l.room.Enter(&b.guest)
	l.mu.Unlock()
	if out != nil {
		out.Evict()
	}
	return b, nil
}

// exempt reports whether an address has no limit of its own. The caller must hold mu.
func (l *BoundListener) exempt(addr netip.Addr) bool {
	return l.limits.ExemptLoopback && addr.IsLoopback() ||
		slices.ContainsFunc(l.limits.Exempt, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// boundConn is a connection of a BoundListener.
type boundConn struct {
	*net.TCPConn
	listener *BoundListener
	guest    quota.Guest[netip.Addr] // guarded by listener.mu
	framing  *framing                // of the goroutine that reads; nil once the connection no longer carries HTTP
}

// Read implements net.Conn. A request whose end is uncertain is not passed on.
func (c *boundConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if c.framing != nil && n > 0 {
		if bad := c.framing.see(p[:n]); bad != nil {
			return 0, bad
		}
	}
	return n, err //nolint:wrapcheck // this is the same connection
}

// Close implements net.Conn.
func (c *boundConn) Close() error {
	c.leave()
	return c.TCPConn.Close() //nolint:wrapcheck // this is the same connection
}

func (c *boundConn) leave() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.room.Leave(&c.guest)
}

// boundOf returns the connection of a BoundListener that c, of a listener of Listen, is over; nil if
// there is no such connection.
func boundOf(c net.Conn) *boundConn {
	if n := nonblock.Under(c); n != nil {
		b, _ := n.Conn.(*boundConn)
		return b
	}
	return nil
}

// upgraded says that a connection no longer carries HTTP and is bounded elsewhere. Nobody may
// read from it meanwhile, and no loop may watch it yet.
func upgraded(c net.Conn) {
	if b := boundOf(c); b != nil {
		b.leave()
		b.framing = nil
	}
	if p, ok := c.(*plainHTTP); ok {
		p.framing = nil
	}
}
