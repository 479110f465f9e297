package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/internal/nonblock"
	"voicegw/session"
)

// secured is a gateway that speaks TLS, with its address and trust.
type secured struct {
	*httptest.Server
	addr, url string
	bound     *BoundListener
	m         *session.Manager
	trust     *tls.Config // of clients

	mu    sync.Mutex // guards the following field
	conns []net.Conn // the connections of http.Server
}

// secure runs a gateway over TLS with connections watched by loops.
func secure(t *testing.T, l ConnectionLimits) *secured {
	t.Helper()
	opts := sessionOptions()
	opts.Limits.ExemptLoopback = true
	m, err := session.NewManager(opts)
	if err != nil {
		t.Fatal(err)
	}
	example := httptest.NewTLSServer(nil)
	example.Close()
	roots := x509.NewCertPool()
	roots.AddCert(example.Certificate())
	s := &secured{m: m, trust: &tls.Config{RootCAs: roots}}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page") })
	s.Server = httptest.NewUnstartedServer(New(Options{Sessions: m, Chat: &fakeAgent{}, Page: page}))
	s.addr = s.Listener.Addr().String()
	s.url = "https://" + s.addr
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = append(s.conns, c)
		return ConnContext(ctx, c)
	}
	s.bound = Bound(s.Listener, l)
	config := &tls.Config{Certificates: example.TLS.Certificates, NextProtos: []string{protocolHTTP2, "http/1.1", protocolACME}}
	s.Listener = ListenTLS(s.bound, &nonblock.Loops{}, config, nil)
	s.Start()
	t.Cleanup(func() {
		m.Close()
		s.Close()
	})
	return s
}

// client returns a client that speaks HTTP/2, or HTTP/1.
func (s *secured) client(t *testing.T, two bool) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: s.trust.Clone(), ForceAttemptHTTP2: two}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestPagesOverTLS: pages and events work over HTTP/2 and over HTTP/1, and this server's page over https has its own
// origin.
func TestPagesOverTLS(t *testing.T) {
	s := secure(t, ConnectionLimits{})
	for _, two := range []bool{true, false} {
		for path, word := range map[string]string{"/": "the page", "/readyz": "ready", "/v1/chat": "event: "} {
			r, err := http.NewRequest("GET", s.url+path, http.NoBody)
			if path == "/v1/chat" {
				r, err = http.NewRequest("POST", s.url+path, strings.NewReader(`{"message":"hi"}`))
			}
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Origin", s.url)
			resp, err := s.client(t, two).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if want := map[bool]int{true: 2, false: 1}[two]; err != nil || resp.ProtoMajor != want || resp.StatusCode != 200 || !strings.Contains(string(body), word) {
				t.Errorf("%s over %s: %d %s, %v", path, resp.Proto, resp.StatusCode, body, err)
			}
		}
		r, err := http.NewRequest("GET", s.url+"/v1/providers", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "http://"+s.addr) // an attacker in the network may have written that page
		resp, err := s.client(t, two).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("a page loaded without TLS may ask: %s", resp.Status)
		}
	}
}

// TestTwoEndsOverTLS is TestTwoEnds for a client that speaks TLS.
func TestTwoEndsOverTLS(t *testing.T) {
	s := secure(t, ConnectionLimits{})
	config := s.trust.Clone()
	config.ServerName = "127.0.0.1"
	for text, want := range map[string]string{
		"POST /v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": "HTTP/1.1 400 Bad Request",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                              "HTTP/1.1 200 OK",
	} {
		c, err := tls.Dial("tcp", s.addr, config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
			t.Errorf("%q is answered %q, %v", text, line, err)
		}
		c.Close()
	}
}

// TestNoTLS: a client that speaks HTTP to a TLS address gets an error that says so.
func TestNoTLS(t *testing.T) {
	s := secure(t, ConnectionLimits{})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(c) // it may end in a reset
	if !strings.HasPrefix(string(answer), "HTTP/1.0 400 ") || !strings.Contains(string(answer), "https://") {
		t.Errorf("answered %q", answer)
	}
}

// TestAuthorityCheckIsNoRequest: a connection for acme-tls/1 serves no HTTP.
func TestAuthorityCheckIsNoRequest(t *testing.T) {
	s := secure(t, ConnectionLimits{})
	config := s.trust.Clone()
	config.NextProtos = []string{protocolACME}
	c, err := tls.Dial("tcp", s.addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") // it may be closed
	if answer, _ := io.ReadAll(c); len(answer) > 0 {
		t.Errorf("answered %q", answer)
	}
}

// TestHandshakesThatNeverEnd: stuck handshakes do not block other clients, and end with the listener.
func TestHandshakesThatNeverEnd(t *testing.T) {
	s := secure(t, ConnectionLimits{AtOnce: 20, PerAddress: 10})
	for range 100 {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write([]byte{22, 3, 1, 2, 0, 1}) // the beginning of a ClientHello; the connection may be closed
	}
	resp, err := s.client(t, false).Get(s.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if n := s.bound.inside(); n > 10 {
		t.Errorf("%d connections are held", n)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Listener.Close()
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("the listener waits for a handshake")
	}
}
