package nonblock

import (
	"errors"
	"net"
	"time"
)

// ErrWouldBlock is what a connection that is watched by a loop returns from Read and
// TryReadInto when there is nothing to read. It is temporary, so that crypto/tls goes on
// afterwards.
var ErrWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nonblock: nothing to read now" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

var errWatched = errors.New("nonblock: a connection that a loop watches is not waited for")

// watched is the state of a connection that is watched by a loop.
type watched struct {
	// Fixed after Notify.
	notify func()

	// Owned by the turn.
	caughtUp time.Time // see Conn.CaughtUp
	drained  bool      // the last turn has left nothing unread
	dry      bool      // the kernel had no more
	told     bool      // it began after Close
	// Written by the turn too, with Conn.mu.
	paused bool // nothing is read any more
	broken bool // the kernel has said so

	// Guarded by Conn.mu.
	loop    *Loop
	slot    int32
	round   uint64 // of loop, in which the last turn was
	fd      int
	inTurn  bool // notify runs
	left    bool // the turn has left something: it has asked for another one
	closing bool // Close was called
	over    bool // fd is closed
}

// Loops returns the loops of the Listener that the connection came from; nil if there are
// none.
func (c *Conn) Loops() *Loops { return c.loops }

// Nudge has the function of Notify called soon, as if something had come.
func (c *Conn) Nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watched; w != nil && !w.over {
		w.left = w.left || w.inTurn
		w.loop.nudge(c)
	}
}

// addrs stands for the connection that a watched one was.
type addrs struct{ local, remote net.Addr }

func (a addrs) Read([]byte) (int, error)         { return 0, errWatched }
func (a addrs) Write([]byte) (int, error)        { return 0, errWatched }
func (a addrs) Close() error                     { return nil }
func (a addrs) LocalAddr() net.Addr              { return a.local }
func (a addrs) RemoteAddr() net.Addr             { return a.remote }
func (a addrs) SetDeadline(time.Time) error      { return nil }
func (a addrs) SetReadDeadline(time.Time) error  { return nil }
func (a addrs) SetWriteDeadline(time.Time) error { return nil }
