package ws

import (
	"io"
	"net"

	"voicegw/internal/nonblock"
)

// Adopt returns the server's side of a connection whose handshake another process has made: from
// now on, stream carries the client's frames. early is what has been read from stream already, at
// most 4 KiB. A stream that is a *nonblock.Conn may be watched by its loops.
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

// Release gives the connection away, without a close frame: it returns the stream, and what has
// been read from it after the last message. It may be called only before Notify, between two
// calls of Read; then the Conn must not be used any more.
func (c *Conn) Release() (stream io.ReadWriteCloser, unread []byte) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.writing.Lock() // a pong that is being written is written whole
	defer c.writing.Unlock()
	unread = append([]byte(nil), c.in.unread()...)
	c.in.free()
	c.freeLong()
	c.failed = net.ErrClosed
	c.closed.Store(true)
	return c.stream, unread
}
