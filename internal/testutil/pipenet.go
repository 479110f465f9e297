package testutil

import (
	"context"
	"net"
	"sync"
)

// PipeListener is an in-memory net.Listener for testing/synctest.
type PipeListener struct {
	conns chan net.Conn // from Dial to Accept; never closed
	done  chan struct{} // closed by Close
	once  sync.Once
}

// ListenPipe returns a new listener.
func ListenPipe() *PipeListener {
	return &PipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for a Dial.
func (l *PipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close refuses further dials. It may be called more than once.
func (l *PipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns a fixed name.
func (l *PipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// Dial connects; it has the signature of http.Transport.DialContext.
func (l *PipeListener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
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
