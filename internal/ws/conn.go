package ws

import (
	"crypto/tls"
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

// Conn is a WebSocket connection. One goroutine may read; all other methods may be called
// by any number of them.
type Conn struct {
	// Fixed after the handshake.
	stream io.ReadWriteCloser
	under  *nonblock.Conn // what stream is, or what is at the bottom of it
	direct bool           // stream is under: it is read without a buffer in wait
	client bool
	limit  int64
	onPong func()

	share share // owned by the turn

	reading sync.Mutex // guards the following fields: held while a message is read
	in      input
	at      progress
	purse   purse
	long    *Message // what the last message was put together in; nil for one within a block
	failed  error    // what ended the reading; final

	writing   sync.Mutex // guards the following field, and keeps frames whole
	closeSent bool

	// owed is an answer to be written by whoever can: the one that reads must not wait
	// until another has written. See answer.
	owed atomic.Pointer[Message]

	heard   atomic.Bool // Notify was called
	flooded atomic.Bool // nothing is read any more; see ErrFlood
	closed  atomic.Bool
	gone    atomic.Pointer[chan struct{}] // closed when the connection is, for a Close that waits; nil: nobody waits
}

// Options are what both sides have in common.
type Options struct {
	// Limit is the longest message that is read, in bytes; a longer one ends the
	// connection with 1009. Zero means 32 KiB.
	Limit int64
	// OnPong is called when a pong has come, by the goroutine that reads. Nil: nobody asks.
	OnPong func()
	// Budget is what the other side may send; the zero value bounds nothing.
	Budget Budget
}

const defaultLimit = 32 << 10

// newConn returns a connection over stream, which has under at its bottom.
func newConn(stream io.ReadWriteCloser, under *nonblock.Conn, client bool, opts Options) *Conn {
	c := &Conn{stream: stream, under: under, client: client, limit: opts.Limit, onPong: opts.OnPong, purse: newPurse(opts.Budget)}
	c.direct = stream == io.ReadWriteCloser(under)
	if c.limit == 0 {
		c.limit = defaultLimit
	}
	return c
}

// bottom returns what is under TLS; nil where that is nothing of ours, or nobody knows what is
// there.
func bottom(c net.Conn) *nonblock.Conn {
	for {
		switch under := c.(type) {
		case *nonblock.Conn:
			return under
		case *dialled:
			return under.Conn
		case *tls.Conn:
			c = under.NetConn()
		default:
			return nil
		}
	}
}

// Ready says that a write of a few KB will most likely not wait for the other side: what
// was written before has left.
func (c *Conn) Ready() bool { return c.under.Ready() }

// LocalAddr is this side's address, as host:port for TCP; empty where that is not known.
func (c *Conn) LocalAddr() string {
	if local := c.under.LocalAddr(); local != nil {
		return local.String()
	}
	return ""
}

// Read returns the next message, valid until the next Read. It holds a buffer only
// once a part of the message is there. An error is final: websocket.CloseStatus tells what
// the other side said, and it wraps websocket.ErrMessageTooBig for a message over the limit
// and net.ErrClosed after Close and CloseNow. After ErrFlood, and only then, the connection is
// open still, for Close to say why it ends; nothing more is read from it.
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

// message waits for the next message. c.reading is held.
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

// CaughtUp is that of [nonblock.Conn]. Only within the function of Notify.
func (c *Conn) CaughtUp() time.Time { return c.under.CaughtUp() }

// Notify has f called when there may be a message to read, and one last time after the
// connection is closed, as [nonblock.Conn.Notify] says. From then on TryRead takes the place
// of Read. f has to call TryRead until that has no message, which it says after 64 frames or
// 64 KiB at the latest.
func (c *Conn) Notify(f func()) {
	c.heard.Store(true) // before the first turn
	c.under.Notify(func() { c.giveTurn(f) })
	c.under.Nudge() // something may have been read already
}

// Nudge has the function of Notify called soon. It may be called at any time.
func (c *Conn) Nudge() { c.under.Nudge() }

// TryRead is Read that does not wait; ok is false where there is no message yet, or the turn
// is over. Only within the function of Notify.
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

// fail ends the reading, and with it the connection, except after a flood: then the other
// side is to be told why. c.reading is held.
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
	_ = c.CloseNow() // it says only whether somebody was faster
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

// Send sends m, which it takes over, in one write.
func (c *Conn) Send(typ websocket.MessageType, m *Message) error {
	defer m.free()
	if err := c.writeFrame(byte(typ), m); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// Ping asks the other side for a pong; see Options.OnPong.
func (c *Conn) Ping() error {
	if err := c.control(opPing, nil); err != nil {
		return fmt.Errorf("write ping: %w", err)
	}
	return nil
}

// closeTime is how long Close waits for the other side, and floodTime how long for one whose
// goodbye will not be read.
const (
	closeTime = 5 * time.Second
	floodTime = time.Second
)

// Close says goodbye with a code and a reason of at most 123 bytes, waits a few seconds
// for the other side's, and closes the connection. Messages that come in between are
// dropped where nobody reads them; after ErrFlood it waits for a second at most, and reads
// nothing. A Read or Write that waits returns an error then.
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
	_ = c.CloseNow() // it may be closed by now
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// hearOut reads until the other side has said goodbye, too, or the connection is closed.
func (c *Conn) hearOut() {
	c.reading.Lock() // a Read that waits has the first word
	defer c.reading.Unlock()
	// Whoever got the last message may still be at it.
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

// awaitGone waits until the connection is closed, which whoever is notified does when the
// other side has said goodbye, too.
func (c *Conn) awaitGone() {
	gone := make(chan struct{}) // by CloseNow
	c.gone.Store(&gone)
	if !c.closed.Load() {
		<-gone
	}
}

// CloseNow closes the connection without a word. Read and Write return errors then. Only
// the first call, or Close before it, does anything; the others return net.ErrClosed.
func (c *Conn) CloseNow() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	if !c.under.Ready() {
		_ = c.under.Close() // TLS would wait for its goodbye to be taken
	}
	err := c.stream.Close()
	if gone := c.gone.Swap(nil); gone != nil {
		close(*gone)
	}
	return err
}
