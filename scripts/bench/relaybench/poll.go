//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// poll waits for many connections on one goroutine, which costs far less than a goroutine
// for each: the two ends of a bench take processor time away from the relay between them.
type poll struct {
	fd     int
	events []unix.EpollEvent
	buf    []byte
}

// maxEvents is how many connections one wait returns, readRoom how much is read from one.
const (
	maxEvents = 512
	readRoom  = 64 << 10
)

func newPoll() (*poll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &poll{fd: fd, events: make([]unix.EpollEvent, maxEvents), buf: make([]byte, readRoom)}, nil
}

// add adds fd to the wait; next gets id with each event.
func (p *poll) add(fd int, id int32) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: id}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &event))
}

// wait calls ready with the id of each connection that has something to read, after at most
// ms; -1 means no timeout.
func (p *poll) wait(ms int, ready func(id int32)) error {
	n, err := unix.EpollWait(p.fd, p.events, ms)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("epoll_wait", err)
	}
	for _, e := range p.events[:max(n, 0)] {
		ready(e.Fd)
	}
	return nil
}

// read reads what fd has, valid until the next read; errClosed says that fd has ended.
func (p *poll) read(fd int) ([]byte, error) {
	n, err := unix.Read(fd, p.buf)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil, nil
	case err != nil || n == 0:
		return nil, errClosed
	}
	return p.buf[:n], nil
}

// patienceMS is how long a write waits for a relay that does not read, in ms.
const patienceMS = 5000

// writeAll writes all of b to fd. It waits if it must: a relay that is so far behind makes
// the run invalid anyway.
func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		switch {
		case errors.Is(err, unix.EAGAIN):
			ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, patienceMS)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return os.NewSyscallError("poll", err)
			}
			if err == nil && ready == 0 {
				return fmt.Errorf("the relay takes nothing for %d ms", patienceMS)
			}
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("write", err)
		default:
			b = b[n:]
		}
	}
	return nil
}

// detach takes a connection away from Go's own poller. It always closes conn.
func detach(conn net.Conn) (fd int, err error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, errors.Join(err, conn.Close())
	}
	var dupErr error
	err = raw.Control(func(own uintptr) {
		fd, dupErr = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0)
	})
	return fd, errors.Join(err, dupErr, conn.Close())
}
