//go:build unix

package nonblock

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// attempt is one system call on a socket, reused so that it allocates nothing.
type attempt struct {
	p    []byte
	n    int
	err  error
	call func(fd uintptr) bool
}

// result returns the outcome of an attempt; err is the connection's own error.
func (a *attempt) result(op string, err error) (int, error) {
	a.p = nil
	switch {
	case err != nil:
		return 0, err
	case errors.Is(a.err, syscall.EAGAIN):
		return 0, nil
	case a.err != nil:
		return 0, os.NewSyscallError(op, a.err)
	}
	return a.n, nil
}

// tryWriter returns a function that writes as much as the kernel accepts at once, and allocates nothing. Its caller
// must hold Conn.mu.
func tryWriter(raw syscall.RawConn) func([]byte) (int, error) {
	a := &attempt{}
	a.call = func(fd uintptr) bool {
		for {
			a.n, a.err = syscall.Write(int(fd), a.p)
			if !errors.Is(a.err, syscall.EINTR) {
				return true // even if it would block: this function never waits
			}
		}
	}
	return func(data []byte) (int, error) {
		a.p = data
		return a.result("write", raw.Write(a.call))
	}
}

// waitReader returns a function that waits until there is something to read and only then asks for the buffer. It
// allocates nothing. Only one goroutine may call it at a time.
func waitReader(raw syscall.RawConn) func(Room) (int, error) {
	var room Room
	a := &attempt{}
	a.call = func(fd uintptr) bool {
		a.p = room.Room()
		for {
			a.n, a.err = syscall.Read(int(fd), a.p)
			switch {
			case errors.Is(a.err, syscall.EINTR):
			case errors.Is(a.err, syscall.EAGAIN):
				room.GiveBack()
				return false // the runtime calls again when data has arrived
			default:
				return true
			}
		}
	}
	return func(r Room) (int, error) {
		room = r
		n, err := a.result("read", raw.Read(a.call))
		room = nil
		if n == 0 && err == nil {
			err = io.EOF
		}
		return max(n, 0), err
	}
}
