package testutil

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
)

// The ports are below the dynamic ranges of RFC 6335, section 6 (from 49152) and Linux (ip_local_port_range, from
// 32768).
const (
	first = 20000
	many  = 12000
)

var next atomic.Int64 // the next candidate. Each process starts at a random one.

func init() { next.Store(rand.Int64N(many)) }

// FreeAddr returns a new free address on 127.0.0.1 (host:port), for tests that need the port before they listen. Its
// ports are outside the system's dynamic range, whose ports may be reused at once. It may be called concurrently.
func FreeAddr() (string, error) {
	var err error
	for range many {
		addr := net.JoinHostPort("127.0.0.1", strconv.FormatInt(first+next.Add(1)%many, 10))
		var ln net.Listener
		if ln, err = net.Listen("tcp", addr); err == nil {
			return addr, ln.Close()
		}
	}
	return "", fmt.Errorf("no port from %d to %d is free: %w", first, first+many-1, err)
}

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
