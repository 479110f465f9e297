//go:build unix

package nonblock

import (
	"errors"
	"os"
	"syscall"
)

// tryWriter returns a function that writes what the kernel takes at once. It is
// called under Conn.mu only, and allocates nothing.
func tryWriter(raw syscall.RawConn) func([]byte) (int, error) {
	var (
		p    []byte
		n    int
		fail error
	)
	write := func(fd uintptr) bool {
		for {
			n, fail = syscall.Write(int(fd), p)
			if !errors.Is(fail, syscall.EINTR) {
				return true // also when it would block: nobody waits here
			}
		}
	}
	return func(data []byte) (int, error) {
		p = data
		err := raw.Write(write)
		p = nil
		switch {
		case err != nil:
			return 0, err
		case errors.Is(fail, syscall.EAGAIN):
			return 0, nil
		case fail != nil:
			return 0, os.NewSyscallError("write", fail)
		}
		return n, nil
	}
}
