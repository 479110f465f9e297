package nonblock

import (
	"net"
	"time"
)

// ErrWouldBlock is what a connection returns from Read and TryReadInto after Notify when
// there is nothing to read. It is temporary, so that crypto/tls goes on afterwards.
var ErrWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nonblock: nothing to read now" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// ear hears one connection after Notify: a loop's watch, or the connection's own goroutine.
type ear interface {
	// read and caughtUp are those of Conn. They are called within a turn.
	read(p []byte) (int, error)
	caughtUp() time.Time

	// writes has the ear write what is pending, and reports false where it cannot.
	// Conn.mu is held.
	writes() bool

	// nudge, pause and close are those of Conn, whose closed is set before close is called.
	nudge()
	pause()
	close() error
}

// Notify has f called from now on when there may be something to read. Each call is a turn.
// It may be called once for a connection, of any kind.
//
//   - Who calls: one of the Loops of the connection, where it has some and is a socket that
//     epoll(7) can watch; otherwise a goroutine of the connection's own. There are never two
//     turns at once for one connection, and each sees what the turn before has done.
//   - What f may do: within a turn Read and TryReadInto do not wait but return ErrWouldBlock,
//     and outside of one nobody may read or change deadlines. Writes may be made at any
//     time. f must not wait for anything, for a turn may hold up other connections, and it
//     must end its turn after a bounded amount of work.
//   - What is left: where f leaves something unread it is called again, after the other
//     connections of the loop have had their turns. Where it has read something and not
//     dealt with it, it asks for another turn with Nudge.
//   - Backpressure: what f does not read stays with the kernel, except for one block of a
//     connection that is read by a goroutine. So a peer is slowed down by whoever is slow
//     to take what it sends.
//   - When it stops: Read reports the end of the connection, and f should Close it then. One
//     last turn follows Close, in which Read returns net.ErrClosed, whoever calls Close, and
//     also where that is f itself. f is not called after that turn.
//   - What Close guarantees: it does not wait for a turn. When the last turn has ended, no
//     descriptor and no goroutine of the connection is left, but for the one that ends with
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

// Nudge has the function of Notify called soon, as if something had come. It may be called
// at any time, and does nothing before Notify and after the last turn.
func (c *Conn) Nudge() {
	if e := c.heard(); e != nil {
		e.nudge()
	}
}

// Pause ends the reading for good: what the other side still sends stays with the kernel,
// which lets it send no more. Read says that there is nothing, until the connection is closed
// or, where a loop watches, broken. Writes go on. Only after Notify.
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

// CaughtUp returns a time by which everything that had come was read: what is read in this
// turn came after it. It is as late as the loop knows; zero where no loop watches the
// connection. Only within the function of Notify.
func (c *Conn) CaughtUp() time.Time { return c.ear.caughtUp() }

// Loops returns the loops that may watch the connection; nil if there are none.
func (c *Conn) Loops() *Loops { return c.loops }
