package nonblock

import (
	"net"
	"sync"
	"time"
)

// ErrWouldBlock means that there is nothing to read; Read and TryReadInto return it after Notify. It is temporary, so
// that crypto/tls continues afterwards.
var ErrWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nonblock: nothing to read now" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// ear reads one connection after Notify: a loop's watch, or the connection's own goroutine.
type ear interface {
	// read and caughtUp implement those of Conn, within a turn.
	read(p []byte) (int, error)
	caughtUp() time.Time

	// writes makes the ear write the pending bytes, and returns false if it cannot. The caller must hold Conn.mu.
	writes() bool

	// nudge, pause and close implement those of Conn. The caller of close must set Conn.closed first.
	nudge()
	pause()
	close() error
}

// Notify sets the function f to call when there may be something to read. Each call is a turn. Notify may be called once
// for a connection, of any kind.
//
//   - Caller: one of the connection's Loops calls f, if it has Loops and is a socket that epoll(7) can watch; otherwise
//     its own goroutine does. A connection never has two turns at once, and each turn sees the effects of the previous.
//   - Duties of f: within a turn Read and TryReadInto do not wait but return ErrWouldBlock; outside of a turn, reading
//     and changing deadlines are not allowed. Writes are always allowed. f must not wait, because a turn may delay other
//     connections, and it must end its turn after a bounded amount of work.
//   - Unread data: if f leaves data unread, it gets another turn after the loop's other connections. If it has read data
//     without processing it, it asks for a turn with Nudge.
//   - Backpressure: unread data stays in the kernel, except for one block of a connection with its own goroutine.
//   - End: Read returns the error that ends the connection, and f should then call Close. One last turn follows Close by
//     any goroutine; in it Read returns net.ErrClosed.
//   - Close does not wait for a turn. After the last turn, no descriptor and no goroutine of the connection is left,
//     except the one that ends with that turn.
func (c *Conn) Notify(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ear != nil {
		panic("nonblock: second call of Notify")
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

// Nudge requests a turn, as if data had arrived. It may be called at any time, and does nothing before Notify and after
// the last turn.
func (c *Conn) Nudge() {
	if e := c.heard(); e != nil {
		e.nudge()
	}
}

// Pause stops reading until the end of the connection: further data stays in the kernel, which then stops the peer.
// Read returns ErrWouldBlock until the connection is closed or, if a loop watches it, broken. Writes continue. Call it
// only after Notify.
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

// CaughtUp returns the latest time known to the loop before which no data of this turn can have arrived; zero if no
// loop watches the connection. Call it only within a turn.
func (c *Conn) CaughtUp() time.Time { return c.ear.caughtUp() }

// Loops returns the loops that may watch the connection, or nil.
func (c *Conn) Loops() *Loops { return c.loops }

// Room provides the buffer for ReadInto.
type Room interface {
	// Room returns a non-empty buffer, immediately before reading.
	Room() []byte
	// GiveBack takes the buffer back if there was nothing to read after all.
	GiveBack()
}

// Borrowed is a Room that takes 16 KiB from a pool only when there is something to read. Its zero value is ready for
// use.
type Borrowed struct{ block *[16 << 10]byte }

var blocks = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// Room implements Room. It returns the same buffer until GiveBack.
func (b *Borrowed) Room() []byte {
	if b.block == nil {
		b.block = blocks.Get().(*[16 << 10]byte)
	}
	return b.block[:]
}

// GiveBack implements Room.
func (b *Borrowed) GiveBack() {
	if b.block != nil {
		blocks.Put(b.block)
		b.block = nil
	}
}

// ReadInto waits until there is something to read, and only then asks for the buffer, so that an idle connection holds
// none; except that a connection that is not a socket of the operating system holds it while it waits. Only one
// goroutine may read at a time. Call it only before Notify.
func (c *Conn) ReadInto(room Room) (int, error) {
	if c.wait != nil {
		return c.wait(room)
	}
	return c.Conn.Read(room.Room())
}

// TryReadInto reads arrived data; without any it returns ErrWouldBlock. Call it only within a turn.
func (c *Conn) TryReadInto(room Room) (int, error) {
	n, err := c.ear.read(room.Room())
	if n <= 0 {
		room.GiveBack()
	}
	return n, err
}

// Read implements net.Conn. After Notify it does not wait, and may be called only within turns.
func (c *Conn) Read(p []byte) (int, error) {
	if c.ear != nil {
		return c.ear.read(p)
	}
	return c.Conn.Read(p)
}
