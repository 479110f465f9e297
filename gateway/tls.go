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

// handshakeTime includes the order of a certificate (ACME). A later handshake finds it.
const handshakeTime = 10 * time.Second

// ALPN protocol names of HTTP/2, and of the handshakes by which a certificate authority verifies a host (RFC 8737).
const (
	protocolHTTP2 = "h2"
	protocolACME  = "acme-tls/1"
)

// ListenTLS is Listen with TLS. config names the protocols: h2, http/1.1 and, for ACME, acme-tls/1. Accepted
// connections have completed their handshake. Close aborts running ones. logger may be nil.
func ListenTLS(ln net.Listener, loops *nonblock.Loops, config *tls.Config, logger *slog.Logger) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	l := &tlsListener{
		Listener: Listen(ln, loops), config: config, logger: cmp.Or(logger, slog.New(slog.DiscardHandler)),
		ctx: ctx, cancel: cancel, accepted: make(chan arrival),
	}
	l.running.Go(l.run)
	return l
}

// tlsListener runs each handshake on its own goroutine. It isn't left to http.Server: see plainHTTP.
type tlsListener struct {
	net.Listener
	config   *tls.Config
	logger   *slog.Logger
	ctx      context.Context //nolint:containedctx // it ends with Close
	cancel   context.CancelFunc
	accepted chan arrival // from run and the handshakes to Accept; never closed
	running  sync.WaitGroup
}

type arrival struct {
	conn net.Conn
	err  error
}

func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It aborts the running handshakes and waits for them.
func (l *tlsListener) Close() error {
	l.cancel()
	err := l.Listener.Close()
	l.running.Wait()
	return err //nolint:wrapcheck // this is the same listener
}

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
		// http.Server retries only after such an error.
		if temporary, ok := errors.AsType[net.Error](err); !ok || !temporary.Temporary() { //nolint:staticcheck // as net/http does
			return
		}
	}
}

func (l *tlsListener) shake(under net.Conn) {
	if b := boundOf(under); b != nil {
		b.framing = nil // the data is encrypted
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
		next = c // net/http expects a *tls.Conn here
	case c.ConnectionState().NegotiatedProtocol == protocolACME:
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

// sayHTTPS answers a client that speaks HTTP without TLS, like net/http.
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

// plainHTTP is a TLS connection with HTTP/1 whose framing is checked. It isn't a *tls.Conn, because net/http would run
// that one's handshake; it has the methods that net/http, nonblock.Under and package ws need.
type plainHTTP struct {
	*tls.Conn
	framing *framing // only for the reading goroutine; nil once the connection isn't HTTP
}

func (c *plainHTTP) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return c.framing.check(p, n, err)
}
