// Package ws provides WebSocket connections (RFC 6455) whose cost depends only on their messages: one system call to
// write a message, one to read arrived data, no allocation for either, and no buffer while there is nothing to read or
// write.
//
// github.com/coder/websocket makes the handshakes on both sides, and this package uses its types (message types, close
// codes, errors). After the handshake this package reads and writes the connection itself, because the library keeps
// 8 KB of buffers for each connection and passes every message through a dozen locks. There are no extensions: audio
// does not compress.
package ws

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/nonblock"
)

// Conn is a WebSocket connection. Only one goroutine may read at a time; all other methods may be called concurrently.
type Conn struct {
	// Fixed after the handshake.
	stream io.ReadWriteCloser
	under  *nonblock.Conn // stream itself, or the connection at the bottom of it
	direct bool           // stream is under: reading it needs no buffer while it waits
	client bool
	limit  int64

	share share // owned by the turn

	reading   sync.Mutex // guards the fields below; held while reading a message
	in        input
	at        progress
	allowance allowance
	records   int      // of TLS, since the start of the frame
	long      *Message // the buffer of the last long message; nil for a message within a block
	failed    error    // the error that ended the reading; final

	writing   sync.Mutex // guards the field below, and keeps frames whole
	closeSent bool

	// owed is an answer for the next writer, because the reading goroutine must not wait for a writing one. See answer.
	owed atomic.Pointer[Message]

	heard   atomic.Bool // Notify was called
	flooded atomic.Bool // reading is over; see ErrFlood
	leaving atomic.Bool // the connection ends with the owed answer; see settle
	closed  atomic.Bool
	watch   watch
	proven  atomic.Uint32                 // see Proven
	gone    atomic.Pointer[chan struct{}] // closed with the connection, for a waiting Close; nil without one
}

// Options are common to both sides.
type Options struct {
	// Limit is the length of the longest message to read, in bytes; a longer one ends the connection with 1009. Zero
	// means 32 KiB.
	Limit  int64
	Budget Budget // of the other side
}

const defaultLimit = 32 << 10

// newConn returns a connection over stream, whose bottom is under.
func newConn(stream io.ReadWriteCloser, under *nonblock.Conn, client bool, opts Options) *Conn {
	c := &Conn{stream: stream, under: under, client: client, limit: opts.Limit, allowance: newAllowance(opts.Budget)}
	c.direct = stream == io.ReadWriteCloser(under)
	if c.limit == 0 {
		c.limit = defaultLimit
	}
	return c
}

// Ready reports whether a write of a few KB will probably not wait for the other side, as no earlier one is pending.
func (c *Conn) Ready() bool { return c.under.Ready() }

// Gone reports whether the other side has closed or reset the connection; see [nonblock.Conn.Gone].
func (c *Conn) Gone() bool { return c.under.Gone() }

// LocalAddr returns this side's address, as host:port for TCP; empty if it is unknown.
func (c *Conn) LocalAddr() string {
	if local := c.under.LocalAddr(); local != nil {
		return local.String()
	}
	return ""
}

// Read returns the next message, valid until the next Read. It holds no buffer before a part of the message has
// arrived. An error is final: websocket.CloseStatus extracts the other side's close code, and the error wraps
// websocket.ErrMessageTooBig for a message over the limit and net.ErrClosed after Close and CloseNow. Every error
// except ErrFlood closes the connection; after ErrFlood Close can send the reason.
func (c *Conn) Read() (websocket.MessageType, []byte, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.failed != nil {
		return 0, nil, c.failed
	}
	typ, p, err := c.message()
	if err != nil {
		c.fail(err)
		return 0, nil, c.failed
	}
	return typ, p, nil
}

func (c *Conn) message() (websocket.MessageType, []byte, error) {
	if !c.at.inside {
		c.freeLong()
	}
	for {
		typ, p, need, err := c.advance()
		if need == 0 || err != nil {
			return typ, p, err
		}
		for len(c.in.unread()) < need {
			if err := c.fill(); err != nil {
				return 0, nil, err
			}
		}
	}
}

// CaughtUp is [nonblock.Conn.CaughtUp]. Call it only within the function of Notify.
func (c *Conn) CaughtUp() time.Time { return c.under.CaughtUp() }

// Notify sets the function f to call when there may be a message to read, and one last time after the connection is
// closed; see [nonblock.Conn.Notify]. f must use TryRead instead of Read, and call it until it returns no message,
// which happens after at most 64 frames or 64 KiB.
func (c *Conn) Notify(f func()) {
	c.heard.Store(true) // before the first turn
	if !c.direct {
		_ = c.under.MakeRoom(0) // the first turn reports an error
	}
	c.under.Notify(func() { c.giveTurn(f) })
	c.under.Nudge() // c.in may already have data
}

// Nudge requests a call of Notify's function. It may be called at any time.
func (c *Conn) Nudge() { c.under.Nudge() }

// TryRead is Read without waiting; ok is false if there is no message yet, or the turn is over. Call it only within the
// function of Notify.
func (c *Conn) TryRead() (typ websocket.MessageType, p []byte, ok bool, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.failed != nil {
		return 0, nil, false, c.failed
	}
	if !c.at.inside {
		c.freeLong()
	}
	for {
		typ, p, need, err := c.advance()
		for err == nil && len(c.in.unread()) < need {
			err = c.tryFill()
		}
		switch {
		case errors.Is(err, nonblock.ErrWouldBlock):
			return 0, nil, false, nil
		case errors.Is(err, errTurnOver) && c.closed.Load(): // this may be the last turn
			c.fail(net.ErrClosed)
			return 0, nil, false, c.failed
		case errors.Is(err, errTurnOver):
			c.share.over = true
			return 0, nil, false, nil
		case err != nil:
			c.fail(err)
			return 0, nil, false, c.failed
		case need == 0:
			return typ, p, true, nil
		}
	}
}

// fail ends the reading and the connection, except after a flood, when Close still sends the reason. The caller must
// hold c.reading.
func (c *Conn) fail(err error) {
	if c.closed.Load() && !errors.As(err, new(websocket.CloseError)) {
		err = net.ErrClosed
	}
	c.failed = fmt.Errorf("read message: %w", err)
	c.in.free()
	c.freeLong()
	if errors.Is(err, ErrFlood) {
		c.flooded.Store(true)
		c.under.Pause()
		return
	}
	if c.heard.Load() && errors.As(err, new(websocket.CloseError)) {
		c.leaving.Store(true)
		if c.settle(); !c.closed.Load() {
			time.AfterFunc(floodTime, func() { _ = c.CloseNow() }) // the writer may wait for the other side
			return
		}
	}
	_ = c.CloseNow() // it may already be closed
}

func (c *Conn) freeLong() {
	if c.long != nil {
		c.long.free()
		c.long = nil
	}
}

// Write sends a copy of p as one message.
func (c *Conn) Write(typ websocket.MessageType, p []byte) error {
	m := NewMessage()
	m.B = append(m.B, p...)
	return c.Send(typ, m)
}

// Send sends m in one write and frees it.
func (c *Conn) Send(typ websocket.MessageType, m *Message) error {
	defer m.free()
	if err := c.writeFrame(byte(typ), m); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// Probe sends a ping with the number n, which must rise with each call. The pong proves that the other side has all that
// was written before, also through proxies that relay its bytes; see Proven.
func (c *Conn) Probe(n uint32) error {
	if err := c.control(opPing, binary.BigEndian.AppendUint32(nil, n)); err != nil {
		return fmt.Errorf("write ping: %w", err)
	}
	return nil
}

// Proven returns the number of the latest answered Probe; zero before the first.
func (c *Conn) Proven() uint32 { return c.proven.Load() }

const (
	closeTime = 5 * time.Second // for which Close waits for the other side
	floodTime = time.Second     // the same after a flood, when it does not read the other side's close frame
)

// Close sends a close frame with a code and a reason of at most 123 bytes, waits up to 5 s for the other side's close
// frame, and closes the connection. If no goroutine reads, it drops messages that arrive before. After ErrFlood it
// reads nothing and waits for at most a second. A waiting Read or Write then returns an error.
func (c *Conn) Close(code websocket.StatusCode, reason string) error {
	if c.closed.Load() {
		return fmt.Errorf("close: %w", net.ErrClosed)
	}
	wait := closeTime
	if c.flooded.Load() {
		wait = floodTime
	}
	late := time.AfterFunc(wait, func() { _ = c.CloseNow() })
	defer late.Stop()
	payload, err := closePayload(code, reason)
	if err == nil {
		err = c.control(opClose, payload)
	}
	if c.heard.Load() || c.flooded.Load() {
		c.awaitGone()
	} else {
		c.hearOut()
	}
	_ = c.CloseNow() // it may already be closed
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// hearOut reads until the other side's close frame or the end of the connection.
func (c *Conn) hearOut() {
	c.reading.Lock() // a waiting Read has precedence
	defer c.reading.Unlock()
	// The receiver of the last message may still be using it.
	c.in.abandon()
	if !c.at.inside {
		c.long = nil
	}
	for c.failed == nil {
		if _, _, err := c.message(); err != nil {
			c.fail(err)
		}
	}
}

// awaitGone waits until the connection is closed: the function of Notify closes it after the other side's close frame.
func (c *Conn) awaitGone() {
	gone := make(chan struct{}) // closed by CloseNow
	c.gone.Store(&gone)
	if !c.closed.Load() {
		<-gone
	}
}

// Reset is CloseNow, but sends RST if the connection is TCP.
func (c *Conn) Reset() error {
	c.under.Linger(0)
	return c.CloseNow()
}

// CloseNow closes the connection without a close frame. Read and Write then return errors. Only the first call of
// CloseNow or Close has an effect; later ones return net.ErrClosed.
func (c *Conn) CloseNow() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	if !c.under.Ready() {
		_ = c.under.Close() // otherwise TLS would wait for room for its closing alert
	}
	err := c.stream.Close()
	if gone := c.gone.Swap(nil); gone != nil {
		close(*gone)
	}
	return err
}
