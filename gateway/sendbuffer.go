package gateway

import (
	"syscall"

	"voicegw/internal/nonblock"
)

// unsentBytes is how much the kernel accepts before the peer's window allows sending. A flush cannot drop it: 16 KiB
// are a third of a second of audio at 24 kHz, and enough to keep any real network busy.
const unsentBytes = 16 << 10

// limitSendBuffer keeps the kernel's send buffer small, so that a flush can drop queued audio. It does nothing on
// platforms without such a limit.
func limitSendBuffer(c *nonblock.Conn) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	// On an error the connection is gone, which the session notices.
	_ = raw.Control(func(fd uintptr) { setUnsentLimit(fd, unsentBytes) })
}
