package ws

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"voicegw/internal/bounded"
	"voicegw/internal/nonblock"
)

// Dial connects to a server at url (ws, wss, http or https). ctx bounds only the handshake. websocket.Dial makes it and
// the response; the head, the body and the duration are bounded, and redirects are errors. If Dial returns an error, it
// has closed all connections that it opened.
//
// Each handshake has its own copy of an http.Transport in shake.HTTPClient, so that no connection of another handshake
// can answer it. Other kinds of RoundTripper are not copied. The loops of a [nonblock.Client] may watch the connection;
// any other connection has a goroutine.
func Dial(ctx context.Context, url string, shake *websocket.DialOptions, opts Options) (*Conn, *http.Response, error) {
	own := websocket.DialOptions{}
	if shake != nil {
		own = *shake
	}
	client := http.Client{}
	if own.HTTPClient != nil {
		client = *own.HTTPClient
	}
	h := newHandshake(client.Transport)
	within := bounded.Over(h, bounded.Limits{Service: "the WebSocket handshake"})
	client.Transport = within.Transport
	if client.CheckRedirect == nil {
		client.CheckRedirect = within.CheckRedirect // the library does not bound redirects
	}
	own.HTTPClient = &client
	library, resp, err := websocket.Dial(ctx, url, &own)
	if err != nil {
		h.end(nil)
		if h.stream != nil {
			_ = h.stream.Close() // end may have closed it already
		}
		return nil, resp, err
	}
	_ = library.CloseNow() // frees the library's buffers; it never had the connection
	return h.take(opts), resp, nil
}

// handshake is the http.RoundTripper of one call of Dial. It owns the connections that it opens until it ends.
type handshake struct {
	// Fixed after newHandshake.
	next http.RoundTripper
	own  *http.Transport // next, if it is our copy; otherwise nil

	// Owned by the goroutine of RoundTrip.
	answering net.Conn           // the connection over which own has sent the request; nil if unknown
	stream    io.ReadWriteCloser // the body of the answer to an upgrade; nil without one

	sealed *atomic.Bool // no connection may be read any more

	mu     sync.Mutex // guards the fields below
	over   bool
	opened []*dialled
}

// handshakeBuffer is the size for most requests and answers, in bytes; a longer one takes several writes or reads.
const handshakeBuffer = 1 << 10

func newHandshake(base http.RoundTripper) *handshake {
	if base == nil {
		base = http.DefaultTransport
	}
	t, ok := base.(*http.Transport)
	if !ok {
		return &handshake{next: base}
	}
	h := &handshake{own: t.Clone(), sealed: new(atomic.Bool)}
	h.next = h.own
	h.own.DisableKeepAlives = true // no request follows this one
	h.own.MaxResponseHeaderBytes = bounded.MaxHeader
	// The buffers are garbage after one request and one answer. Data read ahead fits into a block; see take.
	h.own.ReadBufferSize, h.own.WriteBufferSize = handshakeBuffer, handshakeBuffer
	// An upgrade is HTTP/1.1 and does not need HTTP/2.
	h.own.ForceAttemptHTTP2, h.own.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	dial := nonblock.DialOf(h.own)
	h.own.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return h.open(c)
	}
	return h
}

// errSealed is the error of a connection's Read after the end of the handshake.
var errSealed = errors.New("ws: the handshake is over")

type dialled struct {
	*nonblock.Conn
	sealed *atomic.Bool // the handshake's
}

// NetConn is for nonblock.Under.
func (d *dialled) NetConn() net.Conn { return d.Conn }

func (d *dialled) Read(p []byte) (int, error) {
	if d.sealed.Load() {
		return 0, errSealed
	}
	return d.Conn.Read(p)
}

// open records a new connection, or closes it if the handshake is over: net/http continues to dial after its caller has
// given up.
func (h *handshake) open(c net.Conn) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	n, ok := c.(*nonblock.Conn)
	if !ok {
		n = nonblock.Wrap(c)
	}
	d := &dialled{n, h.sealed}
	h.opened = append(h.opened, d)
	return d, nil
}

// RoundTrip implements http.RoundTripper, and keeps the connection that answers an upgrade.
func (h *handshake) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.own != nil {
		// A request has its connection before it is written, and gets another one only for a retry, so the last one
		// answers. http.Transport reports it on the goroutine that called it.
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) { h.answering = got.Conn },
		}))
	}
	resp, err := h.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	if stream, ok := resp.Body.(io.ReadWriteCloser); ok {
		h.stream = stream
		resp.Body = kept{}
	}
	return resp, nil
}

// kept replaces the connection in the library, which reads the body of an upgrade that it does not accept; that would
// wait for the other side.
type kept struct{}

func (kept) Read([]byte) (int, error)    { return 0, io.EOF }
func (kept) Write(p []byte) (int, error) { return len(p), nil }
func (kept) Close() error                { return nil }

// take makes a Conn of the answering connection, and ends the handshake.
func (h *handshake) take(opts Options) *Conn {
	under := nonblock.Under(h.answering)
	h.end(under)
	if under == nil {
		under = nonblock.Wrap(h.stream)
		return newConn(under, under, true, opts)
	}
	c := newConn(h.stream, under, true, opts)
	if _, ok := h.answering.(*dialled); !ok {
		return c
	}
	// From here on the Conn bypasses net/http, after taking the data that net/http has read ahead. Because all
	// connections are sealed, ReadAll never waits.
	h.sealed.Store(true)
	early, err := io.ReadAll(h.stream)
	if errors.Is(err, errSealed) {
		c.stream, c.direct = c.under, true
	}
	c.in.put(early)
	return c
}

// end closes every connection except kept, which may be nil, and cancels the dials in progress. net/http alone would
// leave some open: a dial continues without its request, and an upgrade answered while its context ends has no owner.
func (h *handshake) end(kept *nonblock.Conn) {
	h.mu.Lock()
	opened := h.opened
	h.over, h.opened = true, nil
	h.mu.Unlock()
	for _, d := range opened {
		if d.Conn != kept {
			_ = d.Close() // net/http may have closed it already
		}
	}
	if h.own != nil {
		h.own.CloseIdleConnections() // also cancels dials
	}
}
