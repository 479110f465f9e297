package nonblock

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watch makes one of the connection's loops watch it. It returns nil and changes nothing if that is impossible. The
// caller must hold c.mu.
func watch(c *Conn, f func()) ear {
	if c.loops == nil {
		return nil
	}
	fd, err := own(c.Conn)
	if err != nil {
		return nil
	}
	w := &c.watched
	w.c, w.notify, w.fd, w.drained, w.loop = c, f, fd, true, c.loops.pick()
	w.caught = w.loop.all.now()
	if w.slot, err = w.loop.attach(w, true, false); err != nil {
		_ = unix.Close(fd)
		*w = watched{}
		return nil
	}
	former := c.Conn
	c.Conn, c.try, c.wait = besides, w.write, nil
	_ = former.Close() // another descriptor of the socket is still open
	return w
}

// own returns a new descriptor of a socket, which Go's poller does not watch.
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

// elsewhere replaces the stream of a watched connection, whose bytes bypass it.
type elsewhere struct{}

var besides net.Conn = standIn{elsewhere{}}

var errWatched = errors.New("nonblock: cannot wait for a connection that a loop watches")

func (elsewhere) Read([]byte) (int, error)  { return 0, errWatched }
func (elsewhere) Write([]byte) (int, error) { return 0, errWatched }
func (elsewhere) Close() error              { return nil }

type watched struct {
	// Fixed after watch.
	c      *Conn
	notify func()
	fd     int

	// Owned by the turn.
	caught  time.Time // see Conn.CaughtUp
	drained bool      // the last turn left nothing unread
	dry     bool      // the kernel had no more
	told    bool      // the turn began after Close
	// Written within the turn too, with Conn.mu held.
	paused bool // reading is over
	broken bool // the kernel has reported a broken connection

	// Guarded by Conn.mu.
	loop   *loop
	slot   int32
	round  uint64 // the loop's round of the last turn
	inTurn bool   // notify runs
	left   bool   // the turn has requested another one
	over   bool   // fd is closed
}

// local and remote ask the kernel for the socket's addresses; nil if no loop watches it, or for other protocols than
// TCP. The caller must hold Conn.mu.
func (w *watched) local() net.Addr  { return w.address(unix.Getsockname) }
func (w *watched) remote() net.Addr { return w.address(unix.Getpeername) }

func (w *watched) address(of func(fd int) (unix.Sockaddr, error)) net.Addr {
	if w.c == nil || w.over {
		return nil
	}
	is, err := of(w.fd)
	if err != nil {
		return nil
	}
	switch is := is.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: is.Addr[:], Port: is.Port}
	case *unix.SockaddrInet6:
		return &net.TCPAddr{IP: is.Addr[:], Port: is.Port}
	}
	return nil
}

func (w *watched) caughtUp() time.Time { return w.caught }

func (w *watched) nudge() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if !w.over {
		w.left = w.left || w.inTurn
		w.loop.nudge(w)
	}
}

// turn writes the pending bytes and calls notify, if the connection still belongs to l.
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
		return // a connection has one turn per round: this turn covers the earlier request
	}
	w.round = l.round
	if w.drained && l.seen.After(w.caught) {
		w.caught = l.seen // that wait would have returned earlier data
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
		_ = unix.Close(w.fd) // closes even with an error
		w.loop.detach(w.slot)
		w.over, c.pending = true, nil
	}
}

// move makes another loop watch the connection, and reports whether it does.
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
	// Due turns of from no longer count.
	_ = unix.EpollCtl(from.poll, unix.EPOLL_CTL_DEL, w.fd, nil)
	from.detach(w.slot)
	w.loop, w.slot, w.round = to, slot, 0
	w.drained = false // the earlier waits of to did not cover this connection
	to.nudge(w)       // the kernel reports pending events again
	return true
}

func (w *watched) write(p []byte) (int, error) {
	if w.c.closed {
		return 0, net.ErrClosed
	}
	switch n, errno := send(w.fd, p); errno {
	case 0:
		return n, nil
	case unix.EAGAIN:
		return 0, nil
	default:
		return 0, os.NewSyscallError("sendto", errno)
	}
}

// flush writes as many pending bytes as possible. The caller must hold Conn.mu.
func (w *watched) flush() {
	c := w.c
	if !c.draining {
		return
	}
	n, err := w.write(c.pending)
	c.pending = append(c.pending[:0], c.pending[n:]...)
	c.moved = c.moved || n > 0
	if c.err == nil {
		c.err = err
	}
	if len(c.pending) == 0 || c.err != nil {
		c.pending, c.draining = nil, false
		c.room.Broadcast()
		_ = w.loop.want(w, !w.paused, false) // avoids a useless report by the kernel
		return
	}
	if n > 0 {
		c.room.Broadcast()
	}
}

// writes implements ear. The loop flushes the pending bytes when the kernel accepts them.
func (w *watched) writes() bool {
	c := w.c
	c.draining = true
	if err := w.loop.want(w, !w.paused, true); err != nil {
		c.err, c.draining = err, false
	}
	return true
}

// close implements ear. It begins to close, and the last turn finishes.
func (w *watched) close() error {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.over {
		return nil // the last turn is over
	}
	_ = unix.Shutdown(w.fd, unix.SHUT_RDWR) // informs the peer at once
	if !w.inTurn {
		w.loop.nudge(w)
	}
	return nil
}

func (w *watched) pause() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.over || w.paused {
		return
	}
	w.paused = true
	_ = w.loop.want(w, false, w.c.draining) // avoids turns without reading
}

// read implements ear. Within a turn the descriptor stays open.
func (w *watched) read(p []byte) (int, error) {
	switch {
	case w.told:
		return 0, net.ErrClosed
	case w.paused && w.broken:
		return 0, io.ErrUnexpectedEOF
	case w.dry || w.paused:
		return 0, ErrWouldBlock
	}
	switch n, errno := receive(w.fd, p); {
	case errno == unix.EAGAIN:
		w.dry = true
		return 0, ErrWouldBlock
	case errno != 0:
		return 0, os.NewSyscallError("recvfrom", errno)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	default:
		w.dry = n < len(p) // data that arrives now belongs to another turn
		return n, nil
	}
}

// hungUp reports whether the peer sends nothing more, or the connection is over. Data that was not read
// does not hide it.
func hungUp(raw syscall.RawConn) bool {
	over := false
	err := raw.Control(func(fd uintptr) {
		asked := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		for {
			n, err := unix.Poll(asked, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			over = n > 0 && err == nil
			return
		}
	})
	return over || err != nil // it is closed on this side
}

// send and receive never wait, so the scheduler need not know of them: as ordinary system calls they would cost a
// twentieth more, and after 20 us the scheduler would give the loop's processor away. Unlike write(2) and read(2), they
// do not pass through the file layer.

func send(fd int, p []byte) (int, unix.Errno) {
	return transfer(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func receive(fd int, p []byte) (int, unix.Errno) {
	return transfer(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
}

// transfer repeats an interrupted call.
func transfer(call uintptr, fd int, p []byte, flags uintptr) (int, unix.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}
