package nonblock

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch has one of the connection's loops hear it; nil where that is not possible, and then
// nothing has changed. c.mu is held.
func watch(c *Conn, f func()) ear {
	if c.loops == nil {
		return nil
	}
	fd, err := own(c.Conn)
	if err != nil {
		return nil
	}
	w := &watched{c: c, notify: f, fd: fd, drained: true, loop: c.loops.pick()}
	w.caught = w.loop.all.now()
	if w.slot, err = w.loop.attach(w, true, false); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	former := c.Conn
	c.Conn, c.try, c.wait = standIn{elsewhere{}, former.LocalAddr(), former.RemoteAddr()}, w.write, nil
	_ = former.Close() // its descriptor is not the only one
	return w
}

// own returns a descriptor of one's own for a socket, which Go's poller does not watch.
func own(conn net.Conn) (int, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var fd int
	var dup error
	err = raw.Control(func(former uintptr) { fd, dup = unix.FcntlInt(former, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, os.NewSyscallError("fcntl", dup))
}

// elsewhere is what is left of a connection that a loop watches: its bytes go past it.
type elsewhere struct{}

var errWatched = errors.New("nonblock: a connection that a loop watches is not waited for")

func (elsewhere) Read([]byte) (int, error)  { return 0, errWatched }
func (elsewhere) Write([]byte) (int, error) { return 0, errWatched }
func (elsewhere) Close() error              { return nil }

// watched is a connection that a loop watches.
type watched struct {
	// Fixed after watch.
	c      *Conn
	notify func()
	fd     int

	// Owned by the turn.
	caught  time.Time // see Conn.CaughtUp
	drained bool      // the last turn has left nothing unread
	dry     bool      // the kernel had no more
	told    bool      // it began after Close
	// Written by the turn too, with Conn.mu.
	paused bool // nothing is read any more
	broken bool // the kernel has said so

	// Guarded by Conn.mu.
	loop   *loop
	slot   int32
	round  uint64 // of loop, in which the last turn was
	inTurn bool   // notify runs
	left   bool   // the turn has left something: it has asked for another one
	over   bool   // fd is closed
}

// caughtUp implements ear.
func (w *watched) caughtUp() time.Time { return w.caught }

// nudge implements ear.
func (w *watched) nudge() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if !w.over {
		w.left = w.left || w.inTurn
		w.loop.nudge(w)
	}
}

// turn writes what is pending and calls notify, if the connection is still l's.
func (w *watched) turn(l *loop, t turn) {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.over || w.loop != l {
		return
	}
	if t.events&unix.EPOLLOUT != 0 {
		w.flush()
	}
	if t.events&^unix.EPOLLOUT == 0 || t.nudged && w.round == l.round {
		return // nobody has two turns in a round: what was asked for came before this one
	}
	w.round = l.round
	if w.drained && l.seen.After(w.caught) {
		w.caught = l.seen // nothing was there then, or that wait had told of it
	}
	w.left = false
	w.broken = w.broken || t.events&(unix.EPOLLHUP|unix.EPOLLERR) != 0
	for again := true; again; again = c.closed && !w.told {
		w.told = c.closed
		w.inTurn, w.dry = true, false
		c.mu.Unlock()
		w.notify()
		c.mu.Lock()
		w.inTurn = false
	}
	if w.drained = w.dry && !w.left; w.drained {
		w.caught = l.woken
	}
	if c.closed {
		_ = unix.Close(w.fd) // it is gone whatever this says
		w.loop.detach(w.slot)
		w.over, c.pending = true, nil
	}
}

// move has another loop watch the connection, and reports whether it does.
func (w *watched) move(from, to *loop) bool {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.over || c.closed || w.loop != from {
		return false
	}
	slot, err := to.attach(w, !w.paused, c.draining)
	if err != nil {
		return false
	}
	// What it may still have for from is no turn any more.
	_ = unix.EpollCtl(from.poll, unix.EPOLL_CTL_DEL, w.fd, nil)
	from.detach(w.slot)
	w.loop, w.slot, w.round = to, slot, 0
	w.drained = false // whether something waits the other loop's waits have not told
	to.nudge(w)       // what was to be told is told again
	return true
}

// write writes what the kernel takes now. Conn.mu is held.
func (w *watched) write(p []byte) (int, error) {
	if w.c.closed {
		return 0, net.ErrClosed
	}
	for {
		n, err := unix.Write(w.fd, p)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0, nil
		case err != nil:
			return 0, os.NewSyscallError("write", err)
		default:
			return n, nil
		}
	}
}

// flush writes what is pending, as far as it goes. Conn.mu is held.
func (w *watched) flush() {
	c := w.c
	if !c.draining {
		return
	}
	n, err := w.write(c.pending)
	c.pending = append(c.pending[:0], c.pending[n:]...)
	if c.err == nil {
		c.err = err
	}
	if len(c.pending) == 0 || c.err != nil {
		c.pending, c.draining = nil, false
		c.room.Broadcast()
		_ = w.loop.want(w, !w.paused, false) // else it is told once more, for nothing
		return
	}
	if n > 0 {
		c.room.Broadcast()
	}
}

// writes implements ear: the loop flushes what is pending when the kernel takes it.
func (w *watched) writes() bool {
	c := w.c
	c.draining = true
	if err := w.loop.want(w, !w.paused, true); err != nil {
		c.err, c.draining = err, false
	}
	return true
}

// close implements ear: it begins to close, and the last turn does the rest.
func (w *watched) close() error {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.over {
		return nil // a turn has seen that the connection is closed, and was the last
	}
	_ = unix.Shutdown(w.fd, unix.SHUT_RDWR) // the other side learns it at once, if it is there
	if !w.inTurn {
		w.loop.nudge(w)
	}
	return nil
}

// pause implements ear.
func (w *watched) pause() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.over || w.paused {
		return
	}
	w.paused = true
	_ = w.loop.want(w, false, w.c.draining) // else there are turns in which nothing is read
}

// read implements ear. Within a turn the descriptor stays open.
func (w *watched) read(p []byte) (int, error) {
	for {
		switch {
		case w.told:
			return 0, net.ErrClosed
		case w.paused && w.broken:
			return 0, io.ErrUnexpectedEOF
		case w.dry || w.paused:
			return 0, ErrWouldBlock
		}
		n, err := unix.Read(w.fd, p)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			w.dry = true
			return 0, ErrWouldBlock
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			w.dry = n < len(p) // what comes now is another turn's
			return n, nil
		}
	}
}
