package gateway

import (
	"syscall"

	"voicegw/internal/nonblock"
)

// unsentBytes is how much the kernel accepts before the peer's window lets it go out. A flush
// cannot drop it any more: 16 KiB are a third of a second of audio at 24 kHz, and keep the
// connection busy on any real network.
const unsentBytes = 16 << 10

// limitSendBuffer keeps the kernel's buffer for a client small, so that a flush can drop what
// is queued. It changes nothing on platforms without such a limit.
func limitSendBuffer(c *nonblock.Conn) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	// An error means that the connection is gone, which the session notices itself.
	_ = raw.Control(func(fd uintptr) { setUnsentLimit(fd, unsentBytes) })
}
