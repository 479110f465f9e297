// Package pipenet is a network in memory, so that tests run a whole HTTP server and its
// WebSocket clients under the fake clock of testing/synctest.
package pipenet

import (
	"context"
	"net"
	"sync"
)

// Listener is a net.Listener whose connections come from Dial. It is made and used
// inside one bubble.
type Listener struct {
	conns chan net.Conn // from Dial to Accept; never closed
	done  chan struct{} // closed by Close, for both sides
	once  sync.Once
}

// Listen makes a listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for a Dial.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close refuses later dials. It may be called more than once.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns a fixed name.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// Dial connects; it has the form of http.Transport.DialContext.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	server, client := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
