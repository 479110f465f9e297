package transporttest

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // required by the WebSocket handshake (RFC 6455, section 4.2.2)
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"voicegw/transport"
)

// Dialer makes an adapter for a provider at host:port, with or without TLS, that connects
// with client.
type Dialer func(t *testing.T, addr string, tls bool, client *http.Client) transport.Transport

// Silences tests every adapter against a provider that falls silent while the
// conversation is being opened, at each step of the opening: Connect must return when its
// context ends and leave no connection or goroutine behind. first is the message that the
// provider sends unasked on a new connection; empty if it sends none.
func Silences(t *testing.T, dial Dialer, first string) {
	t.Helper()
	const upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
	for _, tc := range []struct {
		name string
		tls  bool
		says string // {accept} is the right key
	}{
		{name: "at once"},
		{name: "within TLS", tls: true},
		{name: "within the HTTP answer", says: "HTTP/1.1 101 Switching Proto"},
		{name: "within the header", says: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: web"},
		{name: "after an interim answer", says: "HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"},
		{name: "within the body of a refusal", says: "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100\r\n\r\n{\"error\":"},
		{name: "within the body of a refusal that ends with the connection", says: "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n{\"error\":"},
		{name: "within a chunk of a refusal", says: "HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n{"},
		{name: "after an upgrade with a wrong key", says: upgrade + "d3Jvbmc=\r\n\r\n"},
		{name: "after the upgrade", says: upgrade + "{accept}\r\n\r\n"},
		{name: "within the first frame", says: upgrade + "{accept}\r\n\r\n\x81\x7e\x01\x00{\"type\":"},
		{name: "after the first message", says: upgrade + "{accept}\r\n\r\n" + frame(first)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Run("leaves nothing behind", func(t *testing.T) { fallSilent(t, dial, tc.tls, tc.says) })
			goleak.VerifyNone(t, before)
		})
	}
}

// anyAccept has the length of every Sec-WebSocket-Accept value.
const anyAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

// frame returns a server's text frame with a payload of at most 64 KiB.
func frame(text string) string {
	return "\x81\x7e" + string([]byte{byte(len(text) >> 8), byte(len(text))}) + text
}

// heard is a connection that ends its context when all scripted bytes have been read and the
// adapter waits for more.
type heard struct {
	net.Conn
	total, read int // bytes
	all         func()
}

// Read implements io.Reader.
func (h *heard) Read(p []byte) (int, error) {
	if h.read == h.total && h.total > 0 {
		h.all()
	}
	n, err := h.Conn.Read(p)
	h.read += n
	return n, err
}

func fallSilent(t *testing.T, dial Dialer, withTLS bool, says string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var provider sync.WaitGroup
	provider.Go(func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		if withTLS {
			_, err = in.ReadByte() // bytes of the hello, after which the adapter waits for our message
		} else {
			err = answer(conn, in, says)
		}
		if err != nil {
			t.Error(err)
		}
		if says == "" {
			cancel()
		}
		// The test is over when the adapter has closed the connection.
		_, _ = io.Copy(io.Discard, in)
	})
	// The client sets no timeout: only ctx may end the attempt.
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &heard{Conn: conn, total: len(strings.ReplaceAll(says, "{accept}", anyAccept)), all: cancel}, nil
	}}}
	conn, err := dial(t, ln.Addr().String(), withTLS, client).Connect(ctx, transport.Setup{})
	if err == nil {
		t.Error("Connect succeeded with a silent provider")
		err = conn.Close()
	}
	t.Log(err)
	provider.Wait()
	_ = ln.Close() // the connection was open
}

// answer reads a request and writes a response.
func answer(w io.Writer, in *bufio.Reader, says string) error {
	r, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	const magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + magic)) //nolint:gosec // see above
	_, err = io.WriteString(w, strings.ReplaceAll(says, "{accept}", base64.StdEncoding.EncodeToString(sum[:])))
	return err
}
