package ws

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"voicegw/nonblock"
)

// Accept upgrades a request. On failure it has answered the request. A connection of a
// nonblock.Listener is read without a buffer, and known to be [Conn.Ready] or not.
func Accept(w http.ResponseWriter, r *http.Request, shake *websocket.AcceptOptions, opts Options) (*Conn, error) {
	h := &hijacker{ResponseWriter: w}
	library, err := websocket.Accept(h, r, shake)
	if err != nil {
		return nil, err
	}
	c := newConn(h.conn, false, opts)
	c.in.put(h.early)
	_ = library.CloseNow() // it closes nothing, and gives up what it holds
	return c, nil
}

// hijacker keeps the connection that the library takes over.
type hijacker struct {
	http.ResponseWriter
	conn  net.Conn
	early []byte // what came before the upgrade was answered
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

// uncloseable is a connection whose Close does nothing.
type uncloseable struct{ net.Conn }

func (uncloseable) Close() error { return nil }

// Dial connects to a server at url (ws, wss, http or https). ctx bounds the opening only.
// The response is as with websocket.Dial, which makes the handshake. A client of
// [nonblock.Client] gives connections that are known to be [Conn.Ready] or not.
func Dial(ctx context.Context, url string, shake *websocket.DialOptions, opts Options) (*Conn, *http.Response, error) {
	own := websocket.DialOptions{}
	if shake != nil {
		own = *shake
	}
	client := http.Client{}
	if own.HTTPClient != nil {
		client = *own.HTTPClient
	}
	k := &keeper{next: client.Transport}
	if k.next == nil {
		k.next = http.DefaultTransport
	}
	client.Transport = k
	own.HTTPClient = &client
	ctx, dialled := nonblock.Watch(ctx)
	library, resp, err := websocket.Dial(ctx, url, &own)
	if err != nil {
		return nil, resp, err
	}
	_ = library.CloseNow() // it closes nothing, and gives up what it holds
	c := newConn(k.stream, true, opts)
	if c.under = dialled(); c.under != nil && resp.TLS == nil {
		c.takeSocket()
	}
	return c, resp, nil
}

// takeSocket lets the connection be read past net/http, which may have read ahead.
func (c *Conn) takeSocket() {
	early, err := c.under.Drained(c.stream)
	if err == nil {
		c.stream, c.socket = c.under, c.under
	}
	c.in.put(early)
}

// keeper keeps the connection that comes with the answer to an upgrade.
type keeper struct {
	next   http.RoundTripper
	stream io.ReadWriteCloser
}

// RoundTrip implements http.RoundTripper.
func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	if stream, ok := resp.Body.(io.ReadWriteCloser); ok {
		k.stream = stream
		resp.Body = kept{stream}
	}
	return resp, nil
}

// kept is a stream whose Close does nothing.
type kept struct{ io.ReadWriteCloser }

func (kept) Close() error { return nil }
