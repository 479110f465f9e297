package gemini

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/transport"
)

// secret is the key that no error and no log may show.
const secret = "AIzaTopSecretKey0123456789"

// patience is the time that a test waits for an event.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The SDK's dependencies start it when the program starts.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// provider is a scripted Gemini server.
type provider struct {
	t   *testing.T
	srv *httptest.Server
	// Set before the connections that they affect.
	status int    // refuse the handshake with it
	first  string // sent instead of setupComplete; "-" for nothing
	// redirect sends the handshake to another server.
	redirect string

	peers chan *peer // from the handler to accept, one for each connection
}

// peer is the server's end of one connection.
type peer struct {
	t      *testing.T
	ws     *websocket.Conn
	url    string
	header http.Header
	setup  json.RawMessage
	done   chan struct{} // closed when the test has finished with it
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t, peers: make(chan *peer, 16)}
	p.srv = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.srv.Close)
	return p
}

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	if p.status != 0 {
		http.Error(w, "refused, "+r.Header.Get("X-Goog-Api-Key"), p.status)
		return
	}
	if p.redirect != "" {
		http.Redirect(w, r, p.redirect+r.URL.Path, http.StatusTemporaryRedirect)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(1 << 20)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, setup, err := ws.Read(ctx)
	if err != nil {
		return
	}
	c := &peer{t: p.t, ws: ws, url: r.URL.String(), header: r.Header, setup: setup, done: make(chan struct{})}
	switch p.first {
	case "":
		c.send("{\n  \"setupComplete\": {}\n}\n")
	case "-":
	default:
		c.send(p.first)
	}
	p.peers <- c
	<-c.done
}

// accept returns the provider's end of the next connection.
func (p *provider) accept() *peer {
	p.t.Helper()
	select {
	case c := <-p.peers:
		p.t.Cleanup(func() { close(c.done) })
		return c
	case <-time.After(patience):
		p.t.Fatal("no client connected")
		return nil
	}
}

// send writes one message like the service: JSON in a binary frame.
func (c *peer) send(msg string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageBinary, []byte(msg)); err != nil {
		c.t.Errorf("provider: %v", err)
	}
}

// next reads one message from the adapter.
func (c *peer) next() string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, msg, err := c.ws.Read(ctx)
	if err != nil {
		c.t.Fatalf("the adapter sent nothing: %v", err)
	}
	return string(msg)
}

// close sends a close frame. The adapter answers when it reads the frame, so close does not wait for the answer.
func (c *peer) close(code int, reason string) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = c.ws.Close(websocket.StatusCode(code), reason)
	}()
	c.t.Cleanup(func() { <-closed })
}

// options are those for p, with the test's key and its own connections.
func (p *provider) options() transport.Provider {
	client := &http.Client{Transport: &http.Transport{}}
	p.t.Cleanup(client.CloseIdleConnections)
	return transport.Provider{APIKey: secret, BaseURL: p.srv.URL, HTTPClient: client, Model: "gemini-2.5-flash-native-audio-preview-09-2025"}
}

// connect opens a connection with the given setup and closes it after the test.
func (p *provider) connect(setup transport.Setup) (*transport.Listener, *peer) {
	p.t.Helper()
	return p.connectWith(p.options(), setup)
}

func (p *provider) connectWith(opts transport.Provider, setup transport.Setup) (*transport.Listener, *peer) {
	p.t.Helper()
	tr, err := New(opts)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := tr.Connect(ctx, setup)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	return transport.Listen(c), p.accept()
}

// recv returns the next n events as lines.
func recv(t *testing.T, c *transport.Listener, n int) []string {
	t.Helper()
	var lines []string
	for range n {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		ev, err := c.Recv(ctx)
		cancel()
		if err != nil {
			t.Fatalf("after %q: %v", lines, err)
		}
		lines = append(lines, line(ev))
	}
	return lines
}

// line writes an event in the form of golden lists.
func line(ev transport.Event) string {
	switch ev := ev.(type) {
	case *transport.AudioOut:
		return fmt.Sprintf("AudioOut %s %d bytes", ev.Item, len(ev.PCM))
	case transport.ToolCall:
		return fmt.Sprintf("ToolCall %s id=%s %s %s", ev.Call, ev.ID, ev.Name, ev.Args)
	case transport.ResponseDone:
		if ev.Err != nil {
			return fmt.Sprintf("ResponseDone %s %s %s", ev.ID, ev.Status, ev.Err.Code)
		}
		return fmt.Sprintf("ResponseDone %s %s", ev.ID, ev.Status)
	case transport.Transcript:
		final := ""
		if ev.Final {
			final = " final"
		}
		return fmt.Sprintf("Transcript %s %s %q%s", ev.Item, ev.Role, ev.Text, final)
	case transport.Problem:
		return fmt.Sprintf("Problem %s %s", ev.Err.Kind, ev.Err.Code)
	default:
		name := strings.TrimPrefix(fmt.Sprintf("%T", ev), "transport.")
		return fmt.Sprintf("%s %+v", name, ev)
	}
}

func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func audioMessage(pcm []byte, text string) string {
	said := ""
	if text != "" {
		said = `,"outputTranscription":{"text":` + quote(text) + `}`
	}
	return `{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` +
		base64.StdEncoding.EncodeToString(pcm) + `"}}]}` + said + `}}`
}
