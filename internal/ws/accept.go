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
	under, stream := nonblock.Under(h.conn), io.ReadWriteCloser(h.conn)
	if under == nil {
		under = nonblock.Wrap(h.conn)
		stream = under
	}
	c := newConn(stream, under, false, opts)
	c.in.put(h.early)
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
