// Package nonblock provides network connections that need no waiting goroutine.
//
// A connection keeps bytes that the kernel does not accept at once, up to a bound. So a goroutine that reads one
// connection may itself write to another one: it asks Ready first, and uses a queue if the peer is slow.
//
// To read without waiting, give the connection a function: see [Conn.Notify]. On Linux one goroutine calls the functions
// of many sockets (see [Loops]), so that an idle connection needs no goroutine and no buffer. On other systems each
// connection has its own goroutine, which calls the function in the same way.
package nonblock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// MaxPending bounds the bytes that a Conn keeps for a peer that does not accept them. A
// Write that would exceed it waits, except after MakeRoom.
const MaxPending = 256 << 10

// ErrFull means that a Write after MakeRoom would leave too much pending. It is final.
var ErrFull = errors.New("nonblock: too many bytes wait for the peer")

// Conn is a net.Conn whose Write does not wait for the peer while at most MaxPending bytes are pending. All methods may
// be called concurrently.
type Conn struct {
	net.Conn // replaced by a stand-in when a loop watches it
	// Fixed after Wrap, until a loop watches the connection.
	try  func(p []byte) (int, error) // writes as much as the kernel accepts now
	wait func(Room) (int, error)     // reads as ReadInto does; nil if that is impossible

	loops *Loops // that may watch the connection; may be nil; fixed
	ear   ear    // nil before Notify, which sets it with mu held; a turn may read it without mu

	watched watched // the ear of a connection that a loop watches

	wg sync.WaitGroup // the drainer

	mu       sync.Mutex // guards the fields below
	room     sync.Cond  // pending has shrunk, or err is set
	pending  []byte     // accepted by Write, but not yet by the kernel
	most     int        // pending bytes at which Write fails; 0: it waits instead
	draining bool       // the drainer runs, or the loop writes the pending bytes
	moved    bool       // the kernel has accepted pending bytes since the last call of Moved
	err      error      // the first failure of a write; final
	closed   bool       // Close was called
}

// Wrap returns a Conn for a stream, usually a net.Conn. If the stream is not a socket of the operating system, or the
// platform has no non-blocking writes, the drainer writes every byte. A stream that is not a net.Conn has nil addresses
// and no deadlines.
func Wrap(stream io.ReadWriteCloser) *Conn {
	c, ok := stream.(net.Conn)
	if !ok {
		c = standIn{stream}
	}
	n := &Conn{Conn: c, try: func([]byte) (int, error) { return 0, nil }}
	n.room.L = &n.mu
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			n.try, n.wait = tryWriter(raw), waitReader(raw)
		}
	}
	return n
}

// Under returns the Conn at the bottom of c, which may be c itself: it unwraps connections that
// have a method NetConn, as those of crypto/tls. It is nil if there is no Conn.
func Under(c net.Conn) *Conn {
	for {
		switch is := c.(type) {
		case *Conn:
			return is
		case interface{ NetConn() net.Conn }:
			c = is.NetConn()
		default:
			return nil
		}
	}
}

type standIn struct{ io.ReadWriteCloser }

func (s standIn) LocalAddr() net.Addr              { return nil }
func (s standIn) RemoteAddr() net.Addr             { return nil }
func (s standIn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (s standIn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (s standIn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// LocalAddr implements net.Conn. It is nil if the address is unknown, as for a closed connection that a loop has
// watched.
func (c *Conn) LocalAddr() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is := c.watched.local(); is != nil {
		return is
	}
	return c.Conn.LocalAddr()
}

// RemoteAddr implements net.Conn, as LocalAddr does.
func (c *Conn) RemoteAddr() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is := c.watched.remote(); is != nil {
		return is
	}
	return c.Conn.RemoteAddr()
}

// Ready reports whether nothing is pending: the kernel will probably accept a Write of a few KB whole.
func (c *Conn) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.draining && c.err == nil
}

// Gone reports whether the peer has closed or reset the connection, even if earlier data is unread. It never waits, and
// may be called concurrently. It is false if the kernel does not know, on other systems than Linux, and for a
// connection that is not a socket.
func (c *Conn) Gone() bool {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	return err == nil && hungUp(raw)
}

// Moved reports whether the kernel has accepted pending bytes since the last call of Moved.
func (c *Conn) Moved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	moved := c.moved
	c.moved = false
	return moved
}

// Full reports whether a Write may wait for the peer.
func (c *Conn) Full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > MaxPending/2
}

// Write accepts p. It returns the error of an earlier write, or of this one if the kernel refuses it; the next Write
// returns a later error.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	if !c.draining && c.err == nil {
		done, c.err = c.try(p)
	}
	switch more := len(p) - done; {
	case c.most == 0:
		c.awaitRoom(more)
	case len(c.pending)+more > c.most && c.err == nil:
		c.err = ErrFull
	}
	if c.err != nil {
		return done, c.err
	}
	if done == len(p) {
		return done, nil
	}
	c.pending = append(c.pending, p[done:]...)
	switch {
	case c.draining:
	case c.ear != nil && c.ear.writes():
	default:
		c.draining = true
		c.wg.Go(c.drain)
	}
	return len(p), nil
}

// awaitRoom waits until n more bytes may be pending. The caller must hold c.mu.
func (c *Conn) awaitRoom(n int) {
	for c.err == nil && len(c.pending)+n > MaxPending && len(c.pending) > 0 {
		c.room.Wait()
	}
}

// MakeRoom waits as a Write of n bytes would, and no later Write waits. It is for a connection under TLS, whose Write
// holds a lock that reading needs too, to answer a KeyUpdate of the peer: a turn must not wait for it. ErrFull bounds
// writes without MakeRoom, such as that answer.
func (c *Conn) MakeRoom(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaitRoom(n)
	c.most = 2 * (MaxPending + n) // TLS adds a few bytes to n
	return c.err
}

// Flush waits until the kernel has accepted all written bytes, or writing has failed. It must not be called within a
// turn.
func (c *Conn) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.draining && c.err == nil {
		c.room.Wait()
	}
}

// drain is the drainer: it writes the pending bytes and ends.
func (c *Conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > 0 && c.err == nil {
		batch := c.pending
		c.pending = nil
		c.room.Broadcast()
		c.mu.Unlock()
		n, err := c.Conn.Write(batch)
		c.mu.Lock()
		c.moved = c.moved || n > 0
		if c.err == nil {
			c.err = err
		}
	}
	c.pending = nil
	c.draining = false
	c.room.Broadcast()
}

// Linger sets SO_LINGER, in seconds, of a connection that has it: with 0, Close sends RST. c may be nil.
func (c *Conn) Linger(sec int) {
	if c == nil {
		return
	}
	if t, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		_ = t.SetLinger(sec) // fails only if the connection is closed
	}
}

// Close closes the connection at once; pending bytes are lost. A waiting Read or Write returns an error. Close waits
// for the drainer, but not for a turn (see Notify). Only the first call has an effect; later ones return net.ErrClosed.
func (c *Conn) Close() error {
	c.mu.Lock()
	closes := c.Conn.Close
	if c.ear != nil {
		closes = c.ear.close
	}
	if c.closed {
		closes = func() error { return net.ErrClosed }
	}
	c.closed = true
	if c.err == nil {
		c.err = net.ErrClosed // no drainer starts any more
	}
	c.room.Broadcast()
	c.mu.Unlock()
	err := closes()
	c.wg.Wait()
	return err
}
