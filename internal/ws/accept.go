package ws

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"voicegw/internal/nonblock"
)

// Accept upgrades a request. On failure it has answered the request. The loops of a [nonblock.Listener] may watch its
// connections; each other connection has a goroutine.
func Accept(w http.ResponseWriter, r *http.Request, shake *websocket.AcceptOptions, opts Options) (*Conn, error) {
	h := &hijacker{ResponseWriter: w}
	library, err := websocket.Accept(h, r, shake)
	if err != nil {
		return nil, err
	}
	c := Adopt(h.conn, h.early, opts)
	_ = library.CloseNow() // frees the library's buffers; the connection is uncloseable
	return c, nil
}

// hijacker keeps the connection that the library takes over.
type hijacker struct {
	http.ResponseWriter
	conn  net.Conn
	early []byte // data that arrived before the answer
}

// Unwrap is for http.ResponseController.
func (h *hijacker) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Hijack gives the library a connection that it cannot close, and keeps the real one.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if n := rw.Reader.Buffered(); n > 0 {
		h.early = make([]byte, n)
		if _, err := io.ReadFull(rw, h.early); err != nil {
			return nil, nil, errors.Join(err, conn.Close())
		}
	}
	h.conn = conn
	return uncloseable{conn}, rw, nil
}

type uncloseable struct{ net.Conn }

func (uncloseable) Close() error { return nil }

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
