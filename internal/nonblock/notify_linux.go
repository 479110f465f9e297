package nonblock

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Notify has loop watch the connection from now on: f is called by the loop's goroutine
// when there may be something to read, for which Read and TryReadInto then do not wait, and
// one last time after Close. It must not wait for anything. Where f leaves something unread
// it is called again, after the other connections of the loop have had their turns; where it
// leaves something that it has read and not dealt with, it has to ask for that with Nudge. So
// f should end its turn after a bounded amount of work. The watch costs no goroutine. It
// reports false, and
// nothing has changed, where that is not possible.
//
// Nobody may read or change deadlines meanwhile. Writes may be made at any time, as ever.
func (c *Conn) Notify(loop *Loop, f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if loop == nil || c.err != nil || c.draining || c.watched != nil {
		return false
	}
	fd, err := own(c.Conn)
	if err != nil {
		return false
	}
	w := &watched{loop: loop, notify: f, fd: fd, drained: true, caughtUp: loop.all.now()}
	c.watched = w
	if w.slot, err = loop.attach(c, fd, true, false); err != nil {
		c.watched = nil
		_ = unix.Close(fd)
		return false
	}
	former := c.Conn
	c.Conn, c.try, c.wait = addrs{former.LocalAddr(), former.RemoteAddr()}, w.write, nil
	_ = former.Close() // its descriptor is not the only one
	return true
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

// turn writes what is pending and calls who waits for something to read, if the
// connection is still l's.
func (c *Conn) turn(l *Loop, t turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched
	if w.over || w.loop != l {
		return
	}
	if t.events&unix.EPOLLOUT != 0 {
		c.flush()
	}
	if t.events&^unix.EPOLLOUT == 0 || t.nudged && w.round == l.round {
		return // nobody has two turns in a round: what was asked for came before this one
	}
	w.round = l.round
	if w.drained && l.seen.After(w.caughtUp) {
		w.caughtUp = l.seen // nothing was there then, or that wait had told of it
	}
	w.left = false
	w.broken = w.broken || t.events&(unix.EPOLLHUP|unix.EPOLLERR) != 0
	for again := true; again; again = w.closing && !w.told {
		w.told = w.closing
		w.inTurn, w.dry = true, false
		c.mu.Unlock()
		w.notify()
		c.mu.Lock()
		w.inTurn = false
	}
	if w.drained = w.dry && !w.left; w.drained {
		w.caughtUp = l.woken
	}
	if w.closing {
		_ = unix.Close(w.fd) // it is gone whatever this says
		w.loop.detach(w.slot)
		w.over, c.pending = true, nil
	}
}

// move has another loop watch the connection, and reports whether it does.
func (c *Conn) move(from, to *Loop) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched
	if w.over || w.closing || w.loop != from {
		return false
	}
	slot, err := to.attach(c, w.fd, !w.paused, c.draining)
	if err != nil {
		return false
	}
	// What it may still have for from is no turn any more.
	_ = unix.EpollCtl(from.poll, unix.EPOLL_CTL_DEL, w.fd, nil)
	from.detach(w.slot)
	w.loop, w.slot, w.round = to, slot, 0
	w.drained = false // whether something waits the other loop's waits have not told
	to.nudge(c)       // what was to be told is told again
	return true
}

// write writes what the kernel takes now. Conn.mu is held.
func (w *watched) write(p []byte) (int, error) {
	if w.closing {
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

// flush writes what is pending, as far as it goes. mu is held.
func (c *Conn) flush() {
	if !c.draining {
		return
	}
	w := c.watched
	n, err := w.write(c.pending)
	c.pending = append(c.pending[:0], c.pending[n:]...)
	if c.err == nil {
		c.err = err
	}
	if len(c.pending) == 0 || c.err != nil {
		c.pending, c.draining = nil, false
		c.room.Broadcast()
		_ = w.loop.want(w.fd, w.slot, !w.paused, false) // else it is told once more, for nothing
		return
	}
	if n > 0 {
		c.room.Broadcast()
	}
}

// await has the loop flush what is pending. mu is held.
func (c *Conn) await() {
	w := c.watched
	c.draining = true
	if err := w.loop.want(w.fd, w.slot, !w.paused, true); err != nil {
		c.err, c.draining = err, false
	}
}

// shut begins to close a watched connection: the last turn does the rest. mu is held.
func (c *Conn) shut() error {
	w := c.watched
	if w.closing {
		return net.ErrClosed
	}
	w.closing = true
	_ = unix.Shutdown(w.fd, unix.SHUT_RDWR) // the other side learns it at once, if it is there
	if !w.inTurn {
		w.loop.nudge(c)
	}
	return nil
}

// Pause ends the reading of a watched connection for good: what the other side still sends
// stays with the kernel, which lets it send no more. Read says that there is nothing, until
// the connection is broken or closed. Writes go on.
func (c *Conn) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched
	if w == nil || w.over || w.paused {
		return
	}
	w.paused = true
	_ = w.loop.want(w.fd, w.slot, false, c.draining) // else there are turns in which nothing is read
}

// TryReadInto reads what is there; ErrWouldBlock says that this is nothing. Only within the
// function of Notify.
func (c *Conn) TryReadInto(room Room) (int, error) {
	n, err := c.watched.read(room.Room())
	if n <= 0 {
		room.GiveBack()
	}
	return n, err
}

// read reads what is there. Within a turn the descriptor stays open.
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
