package transporttest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"voicegw/internal/nonblock"
	"voicegw/transport"
)

// watched returns h with connections that a loop watches, where they can be. What they
// hear is had from Recv all the same.
func (h Harness) watched() Harness {
	start := h.Start
	h.Start = func(t *testing.T) Provider { return watchedProvider{start(t)} }
	return h
}

type watchedProvider struct{ Provider }

// Transport implements Provider.
func (p watchedProvider) Transport() transport.Transport {
	return Watched(p.Provider.Transport())
}

// Watched returns a transport like tr whose connections are watched by a loop, where they
// can be. What they hear is had from Recv all the same, but the context of Recv then ends
// the waiting only.
func Watched(tr transport.Transport) transport.Transport {
	return watchedTransport{tr, &nonblock.Loops{}}
}

type watchedTransport struct {
	transport.Transport
	loops *nonblock.Loops
}

// Connect implements transport.Transport.
func (t watchedTransport) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	conn, err := t.Transport.Connect(ctx, setup)
	if err != nil {
		return nil, err
	}
	w := &watchedConn{Conn: conn, more: make(chan struct{}, 1)}
	if c, ok := conn.(transport.Watched); ok && c.Notify(t.loops.Pick(), func() { w.hear(c) }) {
		return w, nil
	}
	return conn, nil
}

// watchedConn keeps what the loop hears until Recv asks for it.
type watchedConn struct {
	transport.Conn
	more chan struct{} // to Recv: there is something; capacity 1, never closed

	mu    sync.Mutex // guards the following fields; held while the loop calls
	heard []transport.Event
	err   error
}

func (w *watchedConn) hear(c transport.Watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil {
		ev, err := c.TryRecv()
		if ev == nil && err == nil {
			return
		}
		if out, ok := ev.(*transport.AudioOut); ok {
			ev = &transport.AudioOut{Item: out.Item, PCM: bytes.Clone(out.PCM)}
		}
		if w.err = err; err == nil {
			w.heard = append(w.heard, ev)
		}
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

var errGivenUp = errors.New("transporttest: the test does not wait any longer")

// Recv implements transport.Conn.
func (w *watchedConn) Recv(ctx context.Context) (transport.Event, error) {
	for {
		if ev, err := w.next(); ev != nil || err != nil {
			return ev, err
		}
		select {
		case <-w.more:
		case <-ctx.Done():
			return nil, errors.Join(errGivenUp, ctx.Err())
		}
	}
}

func (w *watchedConn) next() (transport.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.heard) == 0 {
		return nil, w.err
	}
	ev := w.heard[0]
	w.heard = w.heard[1:]
	return ev, nil
}
