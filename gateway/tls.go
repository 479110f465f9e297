package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"voicegw/internal/nonblock"
)

// handshakeTime bounds a TLS handshake. A certificate that has to be ordered first (ACME) must be
// there within it; a later handshake finds it.
const handshakeTime = 10 * time.Second

// protocolHTTP2 and protocolACME are the names of protocols in TLS (ALPN): that of HTTP/2, and that
// of the handshakes by which a certificate authority checks a host (RFC 8737).
const (
	protocolHTTP2 = "h2"
	protocolACME  = "acme-tls/1"
)

// ListenTLS is Listen for clients that speak TLS. config names the protocols: h2, http/1.1 and,
// if certificates are ordered, acme-tls/1. Connections that it accepts have made their handshake.
// Close ends the handshakes. Failed handshakes are logged at debug level; nil discards.
//
// The sessions' fast path is the same as without TLS: the Conn of package nonblock is under it,
// and no goroutine is left when a handshake is over.
func ListenTLS(ln net.Listener, loops *nonblock.Loops, config *tls.Config, logger *slog.Logger) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	l := &tlsListener{
		Listener: Listen(ln, loops), config: config, logger: cmp.Or(logger, slog.New(slog.DiscardHandler)),
		ctx: ctx, cancel: cancel, accepted: make(chan arrival),
	}
	l.running.Go(l.run)
	return l
}

// tlsListener makes each handshake on a goroutine of its own, so that a slow one delays no other.
// http.Server could do so, too, but then nobody could look at a client's requests before it does:
// see plainHTTP.
type tlsListener struct {
	net.Listener
	// Fixed.
	config   *tls.Config
	logger   *slog.Logger
	ctx      context.Context //nolint:containedctx // it ends with Close
	cancel   context.CancelFunc
	accepted chan arrival // from run and the handshakes to Accept; never closed
	running  sync.WaitGroup
}

// arrival is what one call of Accept returns.
type arrival struct {
	conn net.Conn
	err  error
}

// Accept implements net.Listener.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It waits for the goroutines of handshakes, which it ends.
func (l *tlsListener) Close() error {
	l.cancel()
	err := l.Listener.Close()
	l.running.Wait()
	return err //nolint:wrapcheck // this is the same listener
}

// run accepts connections until the listener is closed or fails.
func (l *tlsListener) run() {
	for {
		c, err := l.Listener.Accept()
		if err == nil {
			l.running.Go(func() { l.shake(c) })
			continue
		}
		select {
		case l.accepted <- arrival{err: err}:
		case <-l.ctx.Done():
			return
		}
		// http.Server waits and goes on after such an error, and after no other.
		if temporary, ok := errors.AsType[net.Error](err); !ok || !temporary.Temporary() { //nolint:staticcheck // as net/http does
			return
		}
	}
}

// shake makes the handshake of one connection, and passes it to Accept or closes it.
func (l *tlsListener) shake(under net.Conn) {
	if b := boundOf(under); b != nil {
		b.framing = nil // what comes over it is encrypted
	}
	c := tls.Server(under, l.config)
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTime)
	defer cancel()
	var next net.Conn
	switch err := c.HandshakeContext(ctx); {
	case err != nil:
		l.logger.Debug("TLS handshake failed", "addr", under.RemoteAddr().String(), "error", err)
		sayHTTPS(err)
	case c.ConnectionState().NegotiatedProtocol == protocolHTTP2:
		next = c // net/http expects a *tls.Conn there
	case c.ConnectionState().NegotiatedProtocol == protocolACME:
		// The authority has seen what it wanted to see.
	default:
		next = &plainHTTP{Conn: c, framing: &framing{}}
	}
	if next != nil {
		select {
		case l.accepted <- arrival{conn: next}:
			return
		case <-l.ctx.Done():
		}
	}
	_ = c.Close() // the client may have closed it
}

// sayHTTPS answers a client that speaks HTTP without TLS, as net/http does.
func sayHTTPS(err error) {
	bad, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || bad.Conn == nil {
		return
	}
	switch string(bad.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET":
		_, _ = io.WriteString(bad.Conn, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n"+
			"This address speaks TLS alone: write https:// or wss://.\n") // the client may have gone
	}
}

// plainHTTP is a TLS connection that carries HTTP/1: what a client sends is checked before net/http
// reads it, as on a connection without TLS. That is why it is not a *tls.Conn, whose handshake
// net/http would make itself; it has what net/http, nonblock.Under and package ws look for
// (ConnectionState, CloseWrite, NetConn).
type plainHTTP struct {
	*tls.Conn
	framing *framing // of the goroutine that reads; nil once the connection no longer carries HTTP
}

// Read implements net.Conn. A request whose end is uncertain is not passed on.
func (c *plainHTTP) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.framing != nil && n > 0 {
		if bad := c.framing.see(p[:n]); bad != nil {
			return 0, bad
		}
	}
	return n, err //nolint:wrapcheck // this is the same connection
}
