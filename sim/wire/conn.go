package wire

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"voicegw/sim/scenario"
)

const (
	// readLimit is the longest frame accepted, in bytes.
	readLimit = 32 << 20
	// writeTimeout ends a connection whose client does not read.
	writeTimeout = 20 * time.Second
	// closeWait is how long a client has to answer a close frame.
	closeWait = 2 * time.Second
	// maxHeld bounds the queue during a delay; beyond it the connection is dropped.
	maxHeld = 64 << 20
	// maxReason is the longest reason in a close frame, in bytes (RFC 6455, 5.5).
	maxReason = 123
)

// ConnOptions configure one accepted connection.
type ConnOptions struct {
	// Subprotocols are those that the server accepts; the first of them that the client offers is selected.
	Subprotocols []string
	// Binary sends binary messages (Gemini) instead of text.
	Binary bool
	// Unknown makes the frame of an unknown event of that type. Nil means {"type": name}.
	Unknown func(name string) []byte
	// Answer answers the handshake with a fault, instead of an upgrade, and returns true; it returns false for a fault
	// that the connection carries out, and does nothing. It is called by Serve, with scenario.HTTPError at least. Nil answers
	// that fault alone, with its status and reason.
	Answer func(a scenario.Fault) bool
	// UpgradeFirst means that a silence at scenario.AtConnect begins after the upgrade, and that an
	// ending server closes the connection after it. Otherwise the silence holds back the answer
	// to the handshake, and an ending server refuses it.
	UpgradeFirst bool
	// Faults is this connection's injector. Nil means no faults.
	Faults *scenario.Injector
	// Stats is updated. Nil disables counting.
	Stats *Stats
}

// frame is one message from the client, or why no more come.
type frame struct {
	data []byte
	err  error
}

// Conn is the server's end of one connection. One goroutine, its owner, calls its methods; only End and Inject may be
// called by others. It runs one goroutine of its own, which reads.
type Conn struct {
	// Fixed after Accept.
	ws      *websocket.Conn
	kind    websocket.MessageType
	unknown func(string) []byte
	stats   *Stats
	begun   time.Time
	// frames goes from the reading goroutine to the owner; it is never closed.
	frames chan frame
	// done goes from End to the owner; End closes it.
	done chan struct{}
	// stop goes from Release to the reading goroutine; Release closes it.
	stop chan struct{}
	// abandon ends the reading goroutine's Read, which closes the socket.
	abandon context.CancelFunc
	ending  sync.Once
	work    sync.WaitGroup // the reading goroutine and the one that Close starts

	injected injected // faults injected by goroutines other than the owner

	slow atomic.Int64 // ns before each frame read; set by the owner, read by the reader

	// Owned by the owner.
	faults    *scenario.Injector
	timed     []scenario.TimedFault
	timer     *time.Timer
	held      [][]byte
	heldBytes int
	holdUntil time.Time
	mute      bool // forever
	muteUntil time.Time
	closed    bool
	// closing is closed by Close's goroutine when the handshake is over; nil before Close.
	closing chan struct{}
}

// Accept upgrades r. If it fails it has answered the request. Origins are not checked, because the simulator is for
// tests. It does not report scenario.AtConnect: the wire must do so before it calls Accept, as Serve does.
func Accept(w http.ResponseWriter, r *http.Request, o ConnOptions) (*Conn, error) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       o.Subprotocols,
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, fmt.Errorf("wire: accept: %w", err)
	}
	ws.SetReadLimit(readLimit)
	c := &Conn{
		ws: ws, kind: websocket.MessageText, unknown: o.Unknown, stats: o.Stats, begun: time.Now(),
		frames: make(chan frame), done: make(chan struct{}), stop: make(chan struct{}),
		faults: o.Faults, timed: o.Faults.Timed(), timer: time.NewTimer(time.Hour),
	}
	if o.Binary {
		c.kind = websocket.MessageBinary
	}
	if c.stats == nil {
		c.stats = &Stats{}
	}
	if c.unknown == nil {
		c.unknown = func(name string) []byte { return fmt.Appendf(nil, `{"type":%q}`, name) }
	}
	c.arm()
	ctx, cancel := context.WithCancel(context.Background())
	c.abandon = cancel
	c.work.Go(func() { c.read(ctx) })
	return c, nil
}

func (c *Conn) read(ctx context.Context) {
	for {
		if !c.dawdle() {
			return
		}
		_, data, err := c.ws.Read(ctx)
		if err == nil {
			c.stats.FramesIn.Add(1)
		}
		select {
		case c.frames <- frame{data, err}:
		case <-c.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// dawdle carries out the slow_read fault; false if the connection is being released.
func (c *Conn) dawdle() bool {
	ns := c.slow.Load()
	if ns == 0 {
		return true
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.stop:
		return false
	}
}

// End asks the owner to finish, by closing Done. It may be called concurrently.
func (c *Conn) End() { c.ending.Do(func() { close(c.done) }) }

// Send sends one frame after asking the injector at AtFrame and, if event is not empty, at AtEvent. During a delay the
// frame is queued; during a silence it is dropped. Send returns the actions that need the protocol, for the owner to
// carry out. If the connection is gone the frame is dropped: Frames reports the end to the owner. Send keeps data only
// during a delay; data must then not be changed afterwards.
func (c *Conn) Send(event string, turn int, data []byte) []scenario.Fault {
	if c.closed {
		return nil
	}
	due := c.faults.At(scenario.Point{At: scenario.AtFrame, Turn: turn})
	if event != "" {
		due = append(due, c.faults.At(scenario.Point{At: scenario.AtEvent, Turn: turn, Event: event})...)
	}
	rest := due
	if len(due) > 0 {
		rest = c.do(due, &data)
	}
	c.put(data)
	return rest
}

// At reports a point, carries out the actions that a connection can and returns the rest.
func (c *Conn) At(p scenario.Point) []scenario.Fault {
	due := c.faults.At(p)
	if p.At == scenario.AtCall {
		due = append(due, c.injected.take(&c.injected.atCall)...)
	}
	return c.Do(due)
}

// Do carries out the actions that a connection can and returns the rest.
func (c *Conn) Do(as []scenario.Fault) []scenario.Fault { return c.do(as, nil) }

func (c *Conn) do(as []scenario.Fault, frame *[]byte) (rest []scenario.Fault) {
	for _, a := range as {
		if c.closed {
			return nil
		}
		c.stats.Committed(a.Kind)
		switch a.Kind {
		case scenario.Delay:
			c.hold(a.For)
		case scenario.Silence:
			c.mute = c.mute || a.For == 0 // forever
			c.muteUntil = time.Now().Add(a.For)
		case scenario.SlowRead:
			c.slow.Store(int64(a.For))
		case scenario.Drop:
			c.drop()
		case scenario.Close:
			c.Close(a.Code, a.Reason)
		case scenario.HTTPError: // too late for a status
			c.Close(int(websocket.StatusInternalError), a.Reason)
		case scenario.UnknownEvent:
			c.put(c.unknown(a.Event))
		case scenario.Malformed:
			if frame == nil {
				c.put([]byte(`{"type":"sim.broken","text":"this frame has no e`))
			} else {
				*frame = (*frame)[:len(*frame)/2]
			}
		default: // it needs the protocol
			rest = append(rest, a)
		}
	}
	return rest
}

func (c *Conn) hold(d time.Duration) {
	now := time.Now()
	if c.holdUntil.Before(now) {
		c.holdUntil = now
	}
	c.holdUntil = c.holdUntil.Add(d)
	c.arm()
}

func (c *Conn) put(data []byte) {
	switch {
	case c.closed || c.mute || time.Now().Before(c.muteUntil):
	case len(c.held) > 0 || time.Now().Before(c.holdUntil):
		c.held = append(c.held, data)
		if c.heldBytes += len(data); c.heldBytes > maxHeld {
			c.drop()
		}
		c.arm()
	default:
		c.write(data)
	}
}

func (c *Conn) write(data []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if err := c.ws.Write(ctx, c.kind, data); err != nil {
		// The reading goroutine sees the same end and reports it to the owner; a client
		// that has not read for so long is cut off here.
		c.drop()
		return
	}
	c.stats.FramesOut.Add(1)
}

func (c *Conn) drop() {
	c.closed = true
	c.held, c.heldBytes = nil, 0
	// The error only means that it was closed before.
	_ = c.ws.CloseNow()
}

func (c *Conn) arm() {
	c.injected.mu.Lock() // otherwise Inject's own setting of the timer could be undone
	defer c.injected.mu.Unlock()
	next := time.Duration(1<<62 - 1)
	if len(c.held) > 0 {
		next = time.Until(c.holdUntil)
	}
	if len(c.timed) > 0 {
		next = min(next, time.Until(c.begun.Add(c.timed[0].After)))
	}
	if len(c.injected.now) > 0 {
		next = 0
	}
	c.timer.Reset(max(next, 0))
}

// Flush sends what waited and is due, and returns the actions of timed and injected faults that need the protocol.
func (c *Conn) Flush() []scenario.Fault {
	rest := c.Do(c.injected.take(&c.injected.now))
	for len(c.timed) > 0 && !time.Now().Before(c.begun.Add(c.timed[0].After)) {
		a := c.timed[0].Fault
		c.timed = c.timed[1:]
		rest = append(rest, c.Do([]scenario.Fault{a})...)
	}
	if !time.Now().Before(c.holdUntil) {
		c.release()
	}
	c.arm()
	return rest
}

func (c *Conn) release() {
	held := c.held
	c.held, c.heldBytes = nil, 0
	for _, data := range held {
		if c.closed {
			return
		}
		c.write(data)
	}
}

// Closed reports whether this side has closed or dropped the connection.
func (c *Conn) Closed() bool { return c.closed }

// Close sends what waits, then a close frame (the reason is cut to 123 bytes).
// It does not wait for the client's answer; Release does. Calling it again has no effect.
func (c *Conn) Close(code int, reason string) {
	if c.closed {
		return
	}
	c.release()
	if c.closed {
		return
	}
	c.closed = true
	c.closing = make(chan struct{})
	c.work.Go(func() {
		defer close(c.closing)
		// A client may fail to answer the close frame, which does not matter here.
		_ = c.ws.Close(websocket.StatusCode(code), cut(reason))
	})
}

// cut shortens a reason to the size of a close frame, without splitting a character.
func cut(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	reason = reason[:maxReason]
	for !utf8.ValidString(reason) {
		reason = reason[:len(reason)-1]
	}
	return reason
}

// Release frees the connection: it gives the client a few seconds to answer a close frame, closes the socket and waits
// for the goroutines. The owner calls it exactly once, at the end.
func (c *Conn) Release() {
	close(c.stop)
	c.injected.end()
	c.timer.Stop()
	if c.closing != nil {
		t := time.NewTimer(closeWait)
		select {
		case <-c.closing:
		case <-t.C:
			c.abandon()
			<-c.closing // at most the 5 s that the library waits
		}
		t.Stop()
	}
	c.closed = true
	c.abandon()
	_ = c.ws.CloseNow() // the error only means that it was closed before
	c.work.Wait()
}
