package nonblock

import (
	"context"
	"net"
	"net/http"
)

// Client returns a copy of c (of http.DefaultClient if nil) whose connections are Conns that loops may watch; loops may
// be nil. A client whose transport is not an http.Transport keeps its connections as they are.
func Client(c *http.Client, loops *Loops) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	if t, ok := own.Transport.(*http.Transport); ok {
		t = t.Clone()
		dial := DialOf(t)
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return loops.wrap(c), nil
		}
		own.Transport = t
	}
	return &own
}

// DialOf returns t's dial function.
func DialOf(t *http.Transport) func(ctx context.Context, network, addr string) (net.Conn, error) {
	old := t.Dial //nolint:staticcheck // callers may still set it
	switch {
	case t.DialContext != nil:
		return t.DialContext
	case old != nil:
		return func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	default:
		return new(net.Dialer).DialContext
	}
}

// Listener wraps accepted connections.
type Listener struct {
	net.Listener
	Loops *Loops // may watch the connections, see [Conn.Notify]; may be nil
}

// Accept returns the next connection, a *Conn.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.Loops.wrap(c), nil
}

func (l *Loops) wrap(c net.Conn) *Conn {
	n := Wrap(c)
	n.loops = l
	return n
}
