package gateway

import "golang.org/x/sys/unix"

// setUnsentLimit sets TCP_NOTSENT_LOWAT (tcp(7)).
func setUnsentLimit(fd uintptr, n int) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
}
