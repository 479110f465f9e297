package ws

import (
	"io"
	"net"

	"voicegw/internal/nonblock"
)

// Adopt returns the server's side of a connection whose handshake another process has made. stream carries the client's
// frames, and early is data already read from it, at most 4 KiB. If stream is a *nonblock.Conn, its loops may watch it.
func Adopt(stream net.Conn, early []byte, opts Options) *Conn {
	under := nonblock.Under(stream)
	if under == nil {
		under = nonblock.Wrap(stream)
		stream = under
	}
	c := newConn(stream, under, false, opts)
	c.in.put(early)
	return c
}

// Release ends the Conn without a close frame. It returns the stream, and the data read from it after the last message.
// It may be called only before Notify and not during Read; the Conn must not be used afterwards.
func (c *Conn) Release() (stream io.ReadWriteCloser, unread []byte) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.writing.Lock() // waits for a pong
	defer c.writing.Unlock()
	unread = append([]byte(nil), c.in.unread()...)
	c.in.free()
	c.freeLong()
	c.failed = net.ErrClosed
	c.closed.Store(true)
	return c.stream, unread
}
