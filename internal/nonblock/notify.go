package nonblock

import (
	"net"
	"time"
)

// ErrWouldBlock is returned by a connection's Read and TryReadInto after Notify if there is
// nothing to read. It is temporary, so that crypto/tls continues afterwards.
var ErrWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nonblock: nothing to read now" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// ear reads one connection after Notify: a loop's watch, or the connection's own goroutine.
type ear interface {
	// read and caughtUp implement those of Conn. They are called within a turn.
	read(p []byte) (int, error)
	caughtUp() time.Time

	// writes lets the ear write the pending bytes, and returns false if it cannot.
	// Conn.mu must be held.
	writes() bool

	// nudge, pause and close implement those of Conn, whose closed is set before close is called.
	nudge()
	pause()
	close() error
}

// Notify makes f be called from now on when there may be something to read. Each call is a
// turn. Notify may be called once for a connection, of any kind.
//
//   - Who calls f: one of the connection's Loops, if it has Loops and is a socket that
//     epoll(7) can watch; otherwise a goroutine of the connection's own. A connection never
//     has two turns at once, and each turn sees the effects of the one before.
//   - What f may do: within a turn Read and TryReadInto do not wait but return ErrWouldBlock;
//     outside of a turn, reading and changing deadlines are not allowed. Writes are allowed at
//     any time. f must not wait for anything, because a turn may delay other connections, and
//     it must end its turn after a bounded amount of work.
//   - What is left: if f leaves something unread it is called again, after the other
//     connections of the loop have had their turns. If it has read something without
//     processing it, it asks for another turn with Nudge.
//   - Backpressure: data that f does not read stays in the kernel, except for one block of a
//     connection that is read by a goroutine. So a slow reader slows its peer down.
//   - When it stops: Read returns the error that ends the connection, and f should call Close
//     then. One last turn follows Close, in which Read returns net.ErrClosed, whether f or
//     another goroutine called Close. f is not called after that turn.
//   - What Close guarantees: it does not wait for a turn. When the last turn has ended, no
//     descriptor and no goroutine of the connection is left, except the one that ends with
//     that turn.
func (c *Conn) Notify(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ear != nil {
		panic("nonblock: Notify is called a second time")
	}
	if c.err == nil && !c.draining {
		c.ear = watch(c, f)
	}
	if c.ear == nil {
		r := &reader{c: c, notify: f}
		c.ear = r
		go r.run()
	}
}

// Nudge makes the function of Notify be called soon, as if data had arrived. It may be called
// at any time, and does nothing before Notify and after the last turn.
func (c *Conn) Nudge() {
	if e := c.heard(); e != nil {
		e.nudge()
	}
}

// Pause stops reading for good: further data stays in the kernel, which then lets the other
// side send no more. Read returns ErrWouldBlock until the connection is closed or, if a loop
// watches it, broken. Writes continue. Call it only after Notify.
func (c *Conn) Pause() {
	if e := c.heard(); e != nil {
		e.pause()
	}
}

// heard returns the ear; nil before Notify.
func (c *Conn) heard() ear {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ear
}

// CaughtUp returns a time by which everything that had arrived was read: data that is read in
// this turn arrived after it. It is the latest such time that the loop knows; zero if no loop
// watches the connection. Call it only within the function of Notify.
func (c *Conn) CaughtUp() time.Time { return c.ear.caughtUp() }

// Loops returns the loops that may watch the connection; nil if no loop may.
func (c *Conn) Loops() *Loops { return c.loops }
