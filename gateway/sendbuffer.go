package gateway

import (
	"syscall"

	"voicegw/internal/nonblock"
)

// unsentBytes is how much the kernel takes before the peer's window lets it go
// out. What it has taken cannot be dropped by a flush any more: 16 KiB are a third
// of a second of audio at 24 kHz, and keep the pipe full on any real network.
const unsentBytes = 16 << 10

// limitSendBuffer keeps what the kernel holds for a client small, so that what is
// queued stays ours to drop. Where the platform cannot, the buffer is what it was.
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
