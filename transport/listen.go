package transport

import (
	"bytes"
	"context"
	"errors"
	"sync"
)

// Listener reads a connection for a test: unlike the connection's own Recv, its Recv waits. Make one with [Listen].
type Listener struct {
	Conn
	more chan struct{} // wakes Recv when there is something; capacity 1, never closed

	mu    sync.Mutex // guards the following fields; held during calls from the connection
	heard []Event
	err   error
}

// Listen starts reading a connection.
func Listen(conn Conn) *Listener {
	l := &Listener{Conn: conn, more: make(chan struct{}, 1)}
	conn.Notify(l.hear)
	return l
}

func (l *Listener) hear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil {
		ev, err := l.Conn.Recv()
		if ev == nil && err == nil {
			return
		}
		if out, ok := ev.(*AudioOut); ok {
			ev = &AudioOut{Item: out.Item, PCM: bytes.Clone(out.PCM), Rate: out.Rate}
		}
		if l.err = err; err == nil {
			l.heard = append(l.heard, ev)
		}
		wake(l.more)
	}
}

var errGivenUp = errors.New("transport: the test does not wait any longer")

// Recv waits for the next event, audio as a copy, until ctx ends. Only one goroutine at a time may call it.
func (l *Listener) Recv(ctx context.Context) (Event, error) {
	for {
		if ev, err := l.next(); ev != nil || err != nil {
			return ev, err
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			return nil, errors.Join(errGivenUp, ctx.Err())
		}
	}
}

func (l *Listener) next() (Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.heard) == 0 {
		return nil, l.err
	}
	ev := l.heard[0]
	l.heard = l.heard[1:]
	return ev, nil
}

// wake puts a token into ch unless it holds one already.
func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
