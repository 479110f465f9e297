package openai

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/transport"
)

// rawProvider is a provider in memory, with WebSocket by hand (RFC 6455), that answers pings after a given time. It works
// in a synctest bubble, with a clock that advances only when all goroutines wait.
type rawProvider struct {
	pongAfter time.Duration // negative: never
	// heard gets each text frame after the setup; nil if the test needs none.
	heard func(frame []byte)
	conn  net.Conn
	in    *bufio.Reader
	wg    sync.WaitGroup
	stop  chan struct{} // closed at the end of the test
	set   bool          // the setup has been answered; owned by serve

	mu    sync.Mutex // guards writes to conn and the following field
	pings int
}

const (
	opText = 0x1
	opPing = 0x9
	opPong = 0xA
)

// connectRaw opens a connection to r.
func connectRaw(t *testing.T, r *rawProvider, opts transport.Provider) transport.Conn {
	t.Helper()
	conn, err := dialRaw(t, r, opts, transport.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// dialRaw is connectRaw with a setup, and with the error.
func dialRaw(t *testing.T, r *rawProvider, opts transport.Provider, setup transport.Setup) (transport.Conn, error) {
	t.Helper()
	near, far := net.Pipe()
	r.conn, r.in, r.stop = far, bufio.NewReader(far), make(chan struct{})
	r.wg.Go(r.serve)
	client := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	opts.APIKey, opts.BaseURL, opts.HTTPClient = secret, "http://provider.test/v1", &http.Client{Transport: client}
	tr, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tr.Connect(context.Background(), setup)
	t.Cleanup(func() {
		if conn != nil {
			_ = conn.Close()
		}
		close(r.stop)
		_ = far.Close()
		r.wg.Wait()
	})
	return conn, err
}

func (r *rawProvider) serve() {
	req, err := http.ReadRequest(r.in)
	if err != nil {
		return
	}
	sum := sha1.Sum([]byte(req.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, _ = fmt.Fprintf(r.conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	r.frame(opText, []byte(created))
	for {
		op, payload, err := r.read()
		if err != nil {
			return
		}
		switch op {
		case opText:
			if r.heard != nil && r.set {
				r.heard(payload)
				continue
			}
			r.set = true
			r.frame(opText, []byte(`{"type":"session.updated","session":{"type":"realtime"}}`))
		case opPing:
			r.mu.Lock()
			r.pings++
			r.mu.Unlock()
			if r.pongAfter >= 0 {
				r.wg.Go(func() { r.pong(payload) })
			}
		}
	}
}

func (r *rawProvider) pong(payload []byte) {
	late := time.NewTimer(r.pongAfter)
	defer late.Stop()
	select {
	case <-late.C:
		r.frame(opPong, payload)
	case <-r.stop:
	}
}

// read reads one masked frame.
func (r *rawProvider) read() (op byte, payload []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(r.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(head[1] & 0x7F)
	if n == 126 {
		var ext [2]byte
		if _, err = io.ReadFull(r.in, ext[:]); err != nil {
			return 0, nil, err
		}
		n = int(binary.BigEndian.Uint16(ext[:]))
	}
	masked := make([]byte, 4+n)
	if _, err = io.ReadFull(r.in, masked); err != nil {
		return 0, nil, err
	}
	payload = masked[4:]
	for i := range payload {
		payload[i] ^= masked[i%4]
	}
	return head[0] & 0xF, payload, nil
}

// frame writes one frame, unmasked as servers do.
func (r *rawProvider) frame(op byte, payload []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	head := []byte{0x80 | op, byte(len(payload))}
	if len(payload) > 125 {
		head = binary.BigEndian.AppendUint16([]byte{0x80 | op, 126}, uint16(len(payload)))
	}
	_, _ = r.conn.Write(append(head, payload...))
}

func (r *rawProvider) pinged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pings
}

func TestSilentProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rawProvider{pongAfter: -1}
		conn := transport.Listen(connectRaw(t, r, transport.Provider{}))
		start := time.Now()
		_, err := conn.Recv(context.Background())
		var e *transport.Error
		if !errors.As(err, &e) || e.Kind != transport.KindRetry || e.Code != "keepalive" {
			t.Fatalf("Recv ends with %v", err)
		}
		if took := time.Since(start); took < time.Minute || took > 100*time.Second {
			t.Errorf("it took %v to find out, want 60 s and up to two pings more", took)
		}
		if n := r.pinged(); n < 2 {
			t.Errorf("%d pings", n)
		}
	})
}

// TestLatePongs: a pong that arrives 35 s after its ping is still a sign of life.
func TestLatePongs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rawProvider{pongAfter: 35 * time.Second}
		conn := transport.Listen(connectRaw(t, r, transport.Provider{}))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		if _, err := conn.Recv(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Recv ends with %v before ten minutes are over", err)
		}
		if n := r.pinged(); n < 25 {
			t.Errorf("%d pings in ten minutes", n)
		}
	})
}

// TestSilenceWithoutNotify: before Notify no pong can be read, so silence says nothing about the provider.
func TestSilenceWithoutNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rawProvider{pongAfter: -1}
		silent := connectRaw(t, r, transport.Provider{})
		pause := time.NewTimer(10 * time.Minute)
		<-pause.C
		conn := transport.Listen(silent)
		r.wg.Go(func() { r.frame(opText, []byte(`{"type":"response.created","response":{"id":"resp_1"}}`)) })
		if ev, err := conn.Recv(context.Background()); err != nil || ev != (transport.ResponseStarted{ID: "resp_1"}) {
			t.Errorf("Recv gives %v, %v", ev, err)
		}
	})
}
