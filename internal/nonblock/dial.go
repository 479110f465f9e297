package nonblock

import (
	"context"
	"net"
	"net/http"
)

// NewTransport returns a copy of base (of http.DefaultTransport if nil) whose
// connections are Conns.
func NewTransport(base *http.Transport) *http.Transport {
	if base == nil {
		base, _ = http.DefaultTransport.(*http.Transport)
	}
	if base == nil {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	t := base.Clone()
	dial := DialOf(t)
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return Wrap(c), nil
	}
	return t
}

// DialOf returns the function that t dials with.
func DialOf(t *http.Transport) func(ctx context.Context, network, addr string) (net.Conn, error) {
	old := t.Dial //nolint:staticcheck // a caller may still set it
	switch {
	case t.DialContext != nil:
		return t.DialContext
	case old != nil:
		return func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	default:
		return new(net.Dialer).DialContext
	}
}

// Client returns a copy of c (of http.DefaultClient if nil) whose connections are
// Conns. A client with a transport of another kind than http.Transport keeps its
// connections as they are.
func Client(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	switch t := own.Transport.(type) {
	case nil:
		own.Transport = NewTransport(nil)
	case *http.Transport:
		own.Transport = NewTransport(t)
	}
	return &own
}

// Listener wraps every connection that it accepts.
type Listener struct {
	net.Listener
	// Loops are those that its connections may be watched by; see Conn.Notify. Nil: none.
	Loops *Loops
}

// Accept returns the next connection, a *Conn.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := Wrap(c)
	n.loops = l.Loops
	return n, nil
}
