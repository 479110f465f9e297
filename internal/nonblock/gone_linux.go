package nonblock

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

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
