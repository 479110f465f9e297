package session

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/coder/websocket"

	"voicegw/protocol"
)

// queue delivers its elements late, and in order. It works in a synctest bubble.
type queue[T any] struct {
	lag  func() time.Duration // delay of the next element; may be called concurrently
	line chan late[T]

	mu   sync.Mutex // guards the following field
	last time.Time  // when the newest element is due
}

type late[T any] struct {
	one T
	due time.Time
}

// queued is the capacity of a queue.
const queued = 1 << 15

func newQueue[T any](lag func() time.Duration) *queue[T] {
	return &queue[T]{lag: lag, line: make(chan late[T], queued)}
}

func (q *queue[T]) put(one T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = later(q.last, time.Now().Add(q.lag()))
	q.line <- late[T]{one, q.last}
}

// slowNet is a network with delays.
type slowNet struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	lag  func() time.Duration
	work sync.WaitGroup // the goroutines of its connections
}

// Dial has the form of http.Transport.DialContext.
func (n *slowNet) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	far, err := n.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	near, inner := net.Pipe()
	n.carry(far, inner)
	n.carry(inner, far)
	return near, nil
}

// carry copies bytes from one connection to another, until one of them ends; then it closes both.
func (n *slowNet) carry(to, from net.Conn) {
	q := newQueue[[]byte](n.lag)
	n.work.Go(func() {
		defer close(q.line)
		for {
			buf := make([]byte, 16<<10)
			size, err := from.Read(buf)
			if err != nil {
				return
			}
			q.put(buf[:size])
		}
	})
	n.work.Go(func() {
		for piece := range q.line {
			pass(time.Until(piece.due))
			if _, err := to.Write(piece.one); err != nil {
				break
			}
		}
		_ = to.Close()
		_ = from.Close()
		for range q.line { // until the other goroutine has noticed
		}
	})
}

// callerEnd is a program's end of a connection to a session, in memory: it implements voice.Conn. Both ends receive
// late.
type callerEnd struct {
	far      *testClient
	up, down *queue[protocol.Frame]
}

// sessionEnd is the session's end of it: it implements Client.
type sessionEnd struct {
	*testClient
	down *queue[protocol.Frame]
}

func newCallerEnd(lag func() time.Duration) (*callerEnd, sessionEnd) {
	c := &callerEnd{far: newTestClient(), up: newQueue[protocol.Frame](lag), down: newQueue[protocol.Frame](lag)}
	go func() {
		for {
			select {
			case f := <-c.up.line:
				pass(time.Until(f.due))
				c.far.in <- f.one.Input()
			case <-c.far.closed:
				return
			}
		}
	}()
	return c, sessionEnd{c.far, c.down}
}

func (s sessionEnd) WriteAudio(pcm []byte) error {
	return s.send(protocol.Frame{Audio: true, Data: pcm})
}

func (s sessionEnd) WriteText(text []byte) error { return s.send(protocol.Frame{Data: text}) }

func (s sessionEnd) send(f protocol.Frame) error {
	if s.isOver() {
		return errClosed
	}
	s.down.put(cloned(f))
	return nil
}

func cloned(f protocol.Frame) protocol.Frame {
	f.Data = append([]byte(nil), f.Data...)
	return f
}

// Read returns the session's frames, and then the error that ended the connection.
func (c *callerEnd) Read() (protocol.Frame, error) {
	var f late[protocol.Frame]
	select {
	case f = <-c.down.line:
	case <-c.far.closed:
		select {
		case f = <-c.down.line:
		default:
			return protocol.Frame{}, c.whyClosed()
		}
	}
	pass(time.Until(f.due))
	return f.one, nil
}

func (c *callerEnd) whyClosed() error {
	c.far.mu.Lock()
	defer c.far.mu.Unlock()
	if c.far.code == 0 {
		return errClosed
	}
	return websocket.CloseError{Code: c.far.code, Reason: c.far.reason}
}

func (c *callerEnd) WriteAudio(pcm []byte) error {
	return c.send(protocol.Frame{Audio: true, Data: pcm})
}

func (c *callerEnd) WriteText(text []byte) error { return c.send(protocol.Frame{Data: text}) }

func (c *callerEnd) send(f protocol.Frame) error {
	if c.far.isOver() {
		return errClosed
	}
	c.up.put(cloned(f))
	return nil
}

func (c *callerEnd) Abort() { c.far.Abort() }
