package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/internal/nonblock"
	"voicegw/protocol"
	"voicegw/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testSecret = []byte(strings.Repeat("s", MinSecret))

const testStart = `{"type":"session.start","input_rate":24000,"output_rate":24000,"resume":{"session_id":"voice-1","token":"t","last_seq":7}}`

// node is a node of a cluster in this test: it runs the session voice-1, or passes clients on.
type node struct {
	url   string
	peers *Peers
}

// serve serves h like a node, over connections that loops may watch.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	return serveOver(t, h, nil)
}

// serveOver is serve, over TLS unless config is nil.
func serveOver(t *testing.T, h http.Handler, config *tls.Config) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	var serving sync.WaitGroup
	var over net.Listener = nonblock.Listener{Listener: ln, Loops: &nonblock.Loops{}}
	scheme := "http://"
	if config != nil {
		over, scheme = tls.NewListener(over, config), "https://"
	}
	serving.Go(func() { _ = server.Serve(over) })
	t.Cleanup(func() {
		server.Close()
		serving.Wait()
	})
	return scheme + ln.Addr().String()
}

// secured is a server with a test certificate, and a client that trusts it.
func secured() (*tls.Config, *http.Client) {
	srv := httptest.NewTLSServer(nil)
	srv.Close()
	return &tls.Config{Certificates: srv.TLS.Certificates}, srv.Client()
}

// owner returns a node that runs the session; accept gets its clients.
func owner(t *testing.T, accept func(h Hello, c *Client)) node {
	t.Helper()
	return ownerThat(t, Options{Accept: accept})
}

// ownerThat returns a node with those options and the secret of the tests.
func ownerThat(t *testing.T, o Options) node {
	t.Helper()
	o.Secret = testSecret
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return node{serve(t, p.Handler()), p}
}

// echo returns every frame, on the turns of the client's connection, until it ends; it returns the first frame and the
// error that ended the reading.
func echo(c *Client) (first string, ended error) {
	in, err := c.Receive()
	if err != nil {
		return "", err
	}
	if start, ok := in.Message.(*protocol.Start); ok {
		text, err := protocol.EncodeClient(start)
		if err != nil {
			return "", err
		}
		first = string(text)
	}
	over := make(chan error, 1)
	var done bool
	c.Notify(func() {
		for !done {
			typ, data, ok, err := c.TryRead()
			switch {
			case err != nil:
				done = true
				over <- err
			case !ok:
				return
			case typ == websocket.MessageBinary:
				_ = c.WriteAudio(data)
			default:
				_ = c.WriteText(data)
			}
		}
	})
	return first, <-over
}

// entrance returns a node that passes every client on to the owner, and the result.
func entrance(t *testing.T, ctx context.Context, p *Peers, ownerURL string) (url string, went <-chan error) {
	t.Helper()
	return entranceOver(t, ctx, p, ownerURL, nil)
}

// entranceOver is entrance for clients that speak TLS, unless config is nil.
func entranceOver(t *testing.T, ctx context.Context, p *Peers, ownerURL string, config *tls.Config) (url string, went <-chan error) {
	t.Helper()
	results := make(chan error, 1)
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	url = serveOver(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := protocol.Accept(w, r, protocol.AcceptOptions{})
		if err != nil {
			results <- err
			return
		}
		running.Go(func() {
			f, err := c.Read()
			if err != nil {
				results <- err
				return
			}
			h := Hello{SessionID: "voice-1", Start: bytes.Clone(f.Data), Addr: netip.MustParseAddr("192.0.2.7"), Origin: "https://a.example"}
			relay, err := p.Dial(ctx, ownerURL, h)
			if err != nil {
				_ = c.Close(websocket.StatusTryAgainLater, "no owner")
				results <- err
				return
			}
			stream, unread := c.Release()
			relay.Run(ctx, stream, unread)
			results <- nil
		})
	}), config)
	return url, results
}

func dial(t *testing.T, url string) *protocol.Conn {
	t.Helper()
	_, client := secured()
	t.Cleanup(client.CloseIdleConnections)
	c, err := protocol.Dial(t.Context(), url, protocol.DialOptions{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Abort)
	return c
}

// TestRelayIsTransparent: a client at another node talks to its session as if it were connected directly: data sent right
// after session.start arrives, frames of every size in order, and close codes of both sides. It may speak TLS.
func TestRelayIsTransparent(t *testing.T) {
	t.Run("plain", func(t *testing.T) { relayIsUnseen(t, nil) })
	t.Run("TLS", func(t *testing.T) {
		config, _ := secured()
		relayIsUnseen(t, config)
	})
}

func relayIsUnseen(t *testing.T, config *tls.Config) {
	type met struct {
		h     Hello
		first string
		ended error
	}
	sessions := make(chan met, 1)
	o := owner(t, func(h Hello, c *Client) {
		go func() {
			first, ended := echo(c)
			c.Abort()
			sessions <- met{h, first, ended}
		}()
	})
	url, went := entranceOver(t, t.Context(), o.peers, o.url, config)
	c := dial(t, url)
	frames := [][]byte{[]byte(testStart), []byte(`{"type":"ping","t":1}`)}
	for i := range 200 {
		frames = append(frames, bytes.Repeat([]byte{byte(i)}, 2*(i*97%9000)+2))
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		for i, f := range frames {
			write := c.WriteAudio
			if i < 2 {
				write = c.WriteText
			}
			if err := write(f); err != nil {
				t.Error(err)
			}
		}
	})
	for i, want := range frames[1:] {
		f, err := c.Read()
		if err != nil || !bytes.Equal(f.Data, want) || f.Audio != (i > 0) {
			t.Fatalf("frame %d: %v, %d bytes, want %d", i, err, len(f.Data), len(want))
		}
	}
	sending.Wait()
	if err := c.Close(websocket.StatusGoingAway, "reload"); err != nil {
		t.Error(err)
	}
	if err := <-went; err != nil {
		t.Error(err)
	}
	m := <-sessions
	if m.first != testStart || protocol.CloseStatus(m.ended) != websocket.StatusGoingAway {
		t.Errorf("the owner got %q and ended with %v", m.first, m.ended)
	}
	if m.h.SessionID != "voice-1" || m.h.Addr.String() != "192.0.2.7" || m.h.Origin != "https://a.example" {
		t.Errorf("the owner got %+v", m.h)
	}
}

// TestOwnersLastMessages: the owner's close code and its last messages reach the client through the other node.
func TestOwnersLastMessages(t *testing.T) {
	o := owner(t, func(_ Hello, c *Client) {
		go func() {
			_, _ = c.Receive()
			_ = c.WriteText([]byte(`{"type":"session.ended"}`))
			_ = c.Close(4005, "length_limit")
		}()
	})
	url, went := entrance(t, t.Context(), o.peers, o.url)
	c := dial(t, url)
	if err := c.WriteText([]byte(testStart)); err != nil {
		t.Fatal(err)
	}
	f, err := c.Read()
	if err != nil || !strings.Contains(string(f.Data), "session.ended") {
		t.Fatal(string(f.Data), err)
	}
	if _, err := c.Read(); protocol.CloseStatus(err) != 4005 {
		t.Error("the client was closed with", err)
	}
	if err := <-went; err != nil {
		t.Error(err)
	}
}

// TestWritesToAClientOverTLSWait: data that a TLS client does not read stays with the owner: a write to the client waits
// until the kernel has taken it, as without TLS.
func TestWritesToAClientOverTLSWait(t *testing.T) {
	config, client := secured()
	conns := make(chan *nonblock.Conn, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	under := nonblock.Listener{Listener: ln}
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		trust := client.Transport.(*http.Transport).TLSClientConfig.Clone()
		trust.ServerName = "example.com"
		c, err := tls.Dial("tcp", ln.Addr().String(), trust)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		for far := <-conns; far.Ready(); { // it reads nothing until something is pending
			runtime.Gosched()
		}
		_, _ = io.Copy(io.Discard, c) // until the other side closes it
	})
	plain, err := under.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Server(plain, config)
	defer c.Close()
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	conns <- plain.(*nonblock.Conn)
	for range 200 {
		if _, err := waiting(c).Write(make([]byte, 60_000)); err != nil {
			t.Fatal(err)
		}
		if !plain.(*nonblock.Conn).Ready() {
			t.Fatal("a write has returned although something is pending")
		}
	}
}

// TestRelayEndsWithEitherSide: the owner notices at once that a client has vanished, and a node that stops (its context
// ends) closes both sides.
func TestRelayEndsWithEitherSide(t *testing.T) {
	for name, vanish := range map[string]func(c *protocol.Conn, leave func()){
		"the client vanishes": func(c *protocol.Conn, _ func()) { c.Abort() },
		"the node leaves":     func(_ *protocol.Conn, leave func()) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			o := owner(t, func(_ Hello, c *Client) {
				go func() {
					_, err := echo(c)
					c.Abort()
					ended <- err
				}()
			})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			url, went := entrance(t, ctx, o.peers, o.url)
			c := dial(t, url)
			for _, text := range []string{testStart, `{"type":"ping"}`} {
				if err := c.WriteText([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Read(); err != nil {
				t.Fatal(err)
			}
			vanish(c, leave)
			if err := <-ended; err == nil || protocol.CloseStatus(err) != -1 {
				t.Error("the owner saw", err)
			}
			if err := <-went; err != nil {
				t.Error(err)
			}
			if _, err := c.Read(); err == nil {
				t.Error("the client is still connected")
			}
		})
	}
}

// TestOwnerThatDoesNotTakeTheClient: the caller learns whether the owner is dead or refuses, and can still send to the
// client.
func TestOwnerThatDoesNotTakeTheClient(t *testing.T) {
	foreign, err := New(Options{Secret: bytes.Repeat([]byte("x"), MinSecret)})
	if err != nil {
		t.Fatal(err)
	}
	o := owner(t, func(Hello, *Client) { t.Error("a client was accepted") })
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }))
	defer busy.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + ln.Addr().String()
	ln.Close()
	for _, c := range []struct {
		name, url string
		by        *Peers
		want      error
	}{
		{"another secret", o.url, foreign, ErrRefused},
		{"an answer that is not an upgrade", busy.URL, o.peers, ErrRefused},
		{"no listener", dead, o.peers, ErrUnreachable},
		{"an address that is not a URL", "voicegw:8090", o.peers, ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, went := entrance(t, t.Context(), c.by, c.url)
			client := dial(t, url)
			if err := client.WriteText([]byte(testStart)); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Read(); protocol.CloseStatus(err) != websocket.StatusTryAgainLater {
				t.Error("the client got", err)
			}
			if err := <-went; !errors.Is(err, c.want) {
				t.Errorf("Dial: %v, want %v", err, c.want)
			}
		})
	}
}

// TestSignatures: a request is accepted once, in its time, and unchanged.
func TestSignatures(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	request := func() *http.Request {
		r := httptest.NewRequest(http.MethodPost, attachPath, nil)
		r.Header.Set(helloHeader, "aGVsbG8=")
		return r
	}
	a, b := newSigner(testSecret), newSigner(testSecret)
	signed := request()
	a.sign(signed, now)
	for _, c := range []struct {
		name   string
		r      *http.Request
		change func(r *http.Request)
		at     time.Time
		want   error
	}{
		{"unsigned", request(), func(*http.Request) {}, now, errUnsigned},
		{"another path", signed, func(r *http.Request) { r.URL.Path = "/v1/peer/other" }, now, errUnsigned},
		{"another method", signed, func(r *http.Request) { r.Method = http.MethodDelete }, now, errUnsigned},
		{"another client", signed, func(r *http.Request) { r.Header.Set(helloHeader, "b3RoZXI=") }, now, errUnsigned},
		{"too late", signed, func(*http.Request) {}, now.Add(signatureLife + time.Second), errOld},
		{"too early", signed, func(*http.Request) {}, now.Add(-signatureLife - time.Second), errOld},
		{"clocks 5 s apart", signed, func(*http.Request) {}, now.Add(-5 * time.Second), nil},
		{"again", signed, func(*http.Request) {}, now, errRepeated},
	} {
		r := c.r.Clone(t.Context())
		c.change(r)
		if err := b.check(r, c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestNoncesAreBounded: the number of remembered requests is limited, and the oldest are removed.
func TestNoncesAreBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newSigner(testSecret)
	for i := range maxNonces {
		if err := s.once(string(rune('a'+i%26))+time.Duration(i).String(), now); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := s.once("one more", now); !errors.Is(err, errBusy) {
		t.Errorf("with %d requests remembered: %v", maxNonces, err)
	}
	if err := s.once("one more", now.Add(2*signatureLife+time.Second)); err != nil || len(s.nonces) != 1 {
		t.Errorf("later: %v, %d remembered", err, len(s.nonces))
	}
}

func FuzzHello(f *testing.F) {
	good, err := Hello{SessionID: "voice-1", Start: []byte(testStart), Addr: netip.MustParseAddr("::1"), Anonymous: "anonymous:x"}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "t=1,n=2,s=3")
	f.Add("e30=", "t=,n=,s=")
	f.Fuzz(func(t *testing.T, hello, signature string) {
		if h, err := parseHello(hello); err == nil {
			if _, err := h.encode(); err != nil && !errors.Is(err, errHelloTooLong) {
				t.Errorf("%+v cannot be sent on: %v", h, err)
			}
			h.User()
		}
		if ts, n, mac, ok := parseSignature(signature); ok && (ts == "" || n == "" || mac == "") {
			t.Errorf("%q has an empty part", signature)
		}
	})
}

// TestEndSession: a node ends a session of another one, and learns whether it existed.
func TestEndSession(t *testing.T) {
	var asked []string
	p, err := New(Options{Secret: testSecret, End: func(id string) bool {
		asked = append(asked, id)
		return id == "voice-1/a b"
	}})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := New(Options{Secret: bytes.Repeat([]byte("x"), MinSecret)})
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, p.Handler())
	for _, c := range []struct {
		name, url, id string
		by            *Peers
		want          error
	}{
		{"a session of that node", at, "voice-1/a b", p, nil},
		{"a session that is over", at, "voice-2", p, store.ErrUnknown},
		{"another secret", at, "voice-3", foreign, ErrRefused},
		{"no listener", "http://127.0.0.1:1", "voice-1", p, ErrUnreachable},
	} {
		if err := c.by.EndSession(t.Context(), store.Node{URL: c.url}, c.id); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if want := []string{"voice-1/a b", "voice-2"}; !slices.Equal(asked, want) {
		t.Errorf("the node was asked to end %q, want %q", asked, want)
	}
}
