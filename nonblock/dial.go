package nonblock

import (
	"context"
	"net"
	"net/http"
	"sync"
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
	dial := t.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		n := Wrap(c)
		if w, ok := ctx.Value(watchKey{}).(*watch); ok {
			w.set(n)
		}
		return n, nil
	}
	return t
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

// watchKey is the key of a watch in a context.
type watchKey struct{}

// watch holds the connection that was dialled for a request.
type watch struct {
	mu   sync.Mutex // guards conn
	conn *Conn
}

func (w *watch) set(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = c
}

// Watch returns a context for one request through a NewTransport, and a function
// that returns the connection which was dialled for it, or nil where it went over
// one that was open already or through another kind of transport.
func Watch(ctx context.Context) (context.Context, func() *Conn) {
	w := &watch{}
	return context.WithValue(ctx, watchKey{}, w), func() *Conn {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.conn
	}
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
