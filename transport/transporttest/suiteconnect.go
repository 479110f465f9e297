package transporttest

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // the handshake of WebSocket wants it (RFC 6455, section 4.2.2)
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

// Dialer makes an adapter of a provider at host:port, over TLS or not, which connects with
// client.
type Dialer func(t *testing.T, addr string, tls bool, client *http.Client) transport.Transport

// Silences runs what every adapter must do with a provider that falls silent while the
// conversation is being opened, at each point of it: Connect returns when its context ends,
// and leaves no connection and no goroutine. first is what the provider says first of all on
// an open connection, without being asked; empty if it says nothing.
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

// anyAccept is as long as the answer to any key.
const anyAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

// frame is a text message of a server, of at most 64 KiB.
func frame(text string) string {
	return "\x81\x7e" + string([]byte{byte(len(text) >> 8), byte(len(text))}) + text
}

// heard is a connection whose context ends when all that is ever said has been read and more
// is waited for.
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
			_, err = in.ReadByte() // of the hello, after which the adapter waits for ours
		} else {
			err = answer(conn, in, says)
		}
		if err != nil {
			t.Error(err)
		}
		if says == "" {
			cancel()
		}
		// It is over when the adapter has closed the connection.
		_, _ = io.Copy(io.Discard, in)
	})
	// A client without a timeout of its own, which would keep its connections.
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &heard{Conn: conn, total: len(strings.ReplaceAll(says, "{accept}", anyAccept)), all: cancel}, nil
	}}}
	conn, err := dial(t, ln.Addr().String(), withTLS, client).Connect(ctx, transport.Setup{})
	if err == nil {
		t.Error("it has connected")
		err = conn.Close()
	}
	t.Log(err)
	provider.Wait()
	_ = ln.Close() // it was open
}

// answer reads a request and says something.
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
