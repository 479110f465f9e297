package ws

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"

	"voicegw/internal/nonblock"
)

// noted is a TCP connection that records its first Read.
type noted struct {
	*net.TCPConn
	once sync.Once
	read chan struct{} // closed by the first Read
}

func (n *noted) Read(p []byte) (int, error) {
	n.once.Do(func() { close(n.read) })
	return n.TCPConn.Read(p)
}

// TestTheRightConnectionIsUsed: a provider refuses the first of two handshakes, with a body, so that its connection can
// be reused. The second is dialling, and the first ends before that dial is complete: net/http may use either connection
// for the second, and has dialled one last. Each connection works afterwards, read by its own goroutine or by a loop.
func TestTheRightConnectionIsUsed(t *testing.T) {
	for _, s := range settings {
		if s.ourServer && s.ourClient && !s.hides {
			t.Run(s.name, func(t *testing.T) { refusedThenAnswered(t, s) })
		}
	}
}

func refusedThenAnswered(t *testing.T, s setting) {
	second := &noted{read: make(chan struct{})}
	var dials, requests atomic.Int64
	asked, dialling, refused := make(chan struct{}), make(chan struct{}), make(chan struct{})
	accepted := make(chan peer, 1)
	loops := s.loops()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			close(asked)
			<-dialling
			http.Error(w, "Try again.", http.StatusServiceUnavailable)
			return
		}
		<-second.read // the second has been dialled
		c, err := Accept(w, r, nil, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- ours{c}
	}))
	if s.tls {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	defer srv.Close()

	base := srv.Client().Transport.(*http.Transport).Clone()
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		n := dials.Add(1)
		if n == 2 {
			close(dialling)
			<-refused
		}
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil && n == 2 {
			second.TCPConn = c.(*net.TCPConn)
			c = second
		}
		return c, err
	}
	shake := &websocket.DialOptions{HTTPClient: nonblock.Client(&http.Client{Transport: base}, loops)}
	defer shake.HTTPClient.CloseIdleConnections()
	var first sync.WaitGroup
	first.Go(func() {
		defer close(refused)
		if _, resp, err := Dial(t.Context(), srv.URL, shake, Options{}); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("the first handshake: %v, %v", resp, err)
		}
	})
	<-asked // by the first
	c, _, err := Dial(t.Context(), srv.URL, shake, Options{})
	if err != nil {
		t.Fatal(err)
	}
	first.Wait()
	var client peer = ours{c}
	if s.heard {
		client = hear(c)
	}
	defer client.now()
	server := <-accepted
	defer server.now()
	for _, pair := range [][2]peer{{client, server}, {server, client}} {
		if err := pair[0].write(websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, p, err := pair[1].read(); err != nil || string(p) != "hello" {
			t.Fatalf("read %q, %v", p, err)
		}
	}
}

// holdings counts the connections that were dialled and not closed.
type holdings struct {
	open sync.WaitGroup
	net.Dialer
}

type held struct {
	net.Conn
	closed func()
}

func (c *held) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

func (l *holdings) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.Dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &held{c, sync.OnceFunc(l.open.Done)}, nil
}

// TestAFailedHandshakeLeavesNoConnection: after any failure of the handshake its connection is closed, even if net/http
// would continue a dial or reuse the connection.
func TestAFailedHandshakeLeavesNoConnection(t *testing.T) {
	refusal := "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nlate"
	for name, tc := range map[string]struct {
		tls    bool
		answer string
		ends   bool // on its own; otherwise the context must end it
	}{
		"it sends nothing":                      {},
		"it sends nothing of the TLS handshake": {tls: true},
		"it sends half a status line":           {answer: "HTTP/1.1 10"},
		"it sends half a header":                {answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: webso"},
		"it refuses":                            {answer: refusal, ends: true},
		"it accepts another key":                {answer: switching("bogus") + "\r\n", ends: true},
		"it stops within a body":                {answer: strings.ReplaceAll(refusal, "late", "l")},
		"within one that the connection ends":   {answer: strings.ReplaceAll(refusal, "Content-Length: 4", "Connection: close")},
		"it stops within a chunk":               {answer: "HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n{"},
		"it accepts while the context ends":     {answer: switching("{accept}") + "\r\n"},
		"it sends one interim answer and waits": {answer: "HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var server sync.WaitGroup
			defer server.Wait()
			server.Go(func() {
				conn, err := ln.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				buf := make([]byte, 4<<10)
				n, err := conn.Read(buf)
				if err != nil {
					t.Error(err)
				}
				_, key, _ := strings.Cut(string(buf[:n]), "Sec-Websocket-Key: ")
				key, _, _ = strings.Cut(key, "\r\n")
				if tc.answer != "" {
					io.WriteString(conn, strings.ReplaceAll(tc.answer, "{accept}", acceptKey(key)))
				}
				if !tc.ends {
					cancel()
				}
				io.Copy(io.Discard, conn) // until it is closed
			})
			led := &holdings{}
			url := "ws://" + ln.Addr().String()
			if tc.tls {
				url = "wss://" + ln.Addr().String()
			}
			// A transport without timeouts that keeps connections.
			client := nonblock.Client(&http.Client{Transport: &http.Transport{DialContext: led.DialContext}}, nil)
			if c, _, err := Dial(ctx, url, &websocket.DialOptions{HTTPClient: client}, Options{}); err == nil {
				c.CloseNow()
				if !strings.Contains(tc.answer, "{accept}") {
					t.Error("it has connected")
				}
			}
			led.open.Wait()
		})
	}
}

// switching is an answer that accepts key, without its last line.
func switching(accept string) string {
	return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + "\r\n"
}

// TestALateDialIsClosed: a dial function ignores the context, and returns a connection that is no longer needed.
func TestALateDialIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			cancel()
			<-release
			return near, nil
		}}}
		if _, _, err := Dial(ctx, "ws://nowhere.invalid", &websocket.DialOptions{HTTPClient: client}, Options{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(release)
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is still open: %v", err)
		}
	})
}

// TestAHandshakeSpeaksHTTP1: a handshake uses HTTP/1.1, even if server and transport prefer HTTP/2.
func TestAHandshakeSpeaksHTTP1(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, nil, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		c.CloseNow()
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c, resp, err := Dial(t.Context(), srv.URL, &websocket.DialOptions{HTTPClient: nonblock.Client(srv.Client(), nil)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if resp.ProtoMajor != 1 || c.under == nil {
		t.Errorf("%s, over %v", resp.Proto, c.under)
	}
}

// TestDialThroughAProxy: without TLS, and with TLS in a tunnel, the loops watch the connection to the proxy.
func TestDialThroughAProxy(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "TLS"}[withTLS], func(t *testing.T) {
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := Accept(w, r, nil, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				defer c.CloseNow()
				if typ, p, err := c.Read(); err != nil || c.Write(typ, p) != nil {
					t.Error(err)
				}
				_, _, _ = c.Read() // until the client has got the echo
			}))
			if withTLS {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			defer srv.Close()
			via := tunnel(t, srv.Listener.Addr().String())
			base := srv.Client().Transport.(*http.Transport).Clone()
			base.Proxy = http.ProxyURL(via)
			loops := &nonblock.Loops{}
			c, _, err := Dial(t.Context(), srv.URL, &websocket.DialOptions{HTTPClient: nonblock.Client(&http.Client{Transport: base}, loops)}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			client := hear(c)
			defer client.now()
			if err := client.write(websocket.MessageText, []byte("echo")); err != nil {
				t.Fatal(err)
			}
			if _, p, err := client.read(); err != nil || string(p) != "echo" {
				t.Errorf("read %q, %v", p, err)
			}
			if c.LocalAddr() == "" || c.under.Loops() != loops || c.direct == withTLS {
				t.Errorf("at %q over %v, read directly: %v", c.LocalAddr(), c.under, c.direct)
			}
		})
	}
}

// tunnel is a proxy that passes everything on to target, until the test ends.
func tunnel(t *testing.T, target string) *url.URL {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var passing sync.WaitGroup
	t.Cleanup(func() { ln.Close(); passing.Wait() })
	passing.Go(func() {
		near, err := ln.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer near.Close()
		far, err := net.Dial("tcp", target)
		if err != nil {
			t.Error(err)
			return
		}
		defer far.Close()
		in := bufio.NewReader(near)
		if method, err := in.Peek(len("CONNECT")); err == nil && string(method) == "CONNECT" {
			if _, err := http.ReadRequest(in); err != nil {
				t.Error(err)
			}
			io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		}
		passing.Go(func() { io.Copy(near, far); near.Close() })
		io.Copy(far, in)
	})
	return &url.URL{Scheme: "http", Host: ln.Addr().String()}
}
