//go:build linux

package main

import (
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// runSplice is the least work that a relay can do, and so the calibration for others on this
// machine at this moment: one loop that writes to one side what it reads from the other,
// without inspecting it.
func runSplice(in io.Reader, out io.Writer, to string) error {
	p, err := newPoll()
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	say(out, "%s\n", ln.Addr())
	failed := make(chan error, 3) // one for each goroutine; never closed
	go func() { failed <- spliceAccept(p, ln, to) }()
	go func() { failed <- spliceLoop(p) }()
	go func() {
		_, err := io.Copy(io.Discard, in)
		failed <- err
	}()
	return <-failed
}

// spliceRoom is the maximum number of descriptors.
const spliceRoom = 1 << 16

// spliceAccept joins each connection with a connection of its own to the other side. The event
// of each holds the other's descriptor.
func spliceAccept(p *poll, ln net.Listener, to string) error {
	for {
		near, err := ln.Accept()
		if err != nil {
			return err
		}
		far, err := net.Dial("tcp", to)
		if err != nil {
			return err
		}
		a, err := detach(near)
		if err != nil {
			return err
		}
		b, err := detach(far)
		if err != nil {
			return err
		}
		if err := p.add(a, int32(b*spliceRoom+a)); err != nil {
			return err
		}
		if err := p.add(b, int32(a*spliceRoom+b)); err != nil {
			return err
		}
	}
}

// spliceLoop copies bytes. When a side ends, the other is shut down, and both are closed
// with the process.
func spliceLoop(p *poll) error {
	for {
		err := p.wait(-1, func(id int32) {
			from, to := int(uint32(id)%spliceRoom), int(uint32(id)/spliceRoom)
			b, err := p.read(from)
			if err == nil {
				err = writeAll(to, b)
			}
			if err != nil {
				_ = unix.Shutdown(from, unix.SHUT_RDWR)
				_ = unix.Shutdown(to, unix.SHUT_RDWR)
				_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, from, nil)
			}
		})
		if err != nil {
			return err
		}
	}
}
