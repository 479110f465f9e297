package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/sim/wire"
)

func TestMain(m *testing.M) {
	// genai depends on opencensus, which starts a goroutine at its import.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

const (
	betaPath = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	model25  = "models/gemini-2.5-flash-native-audio-preview-09-2025"
	model31  = "models/gemini-3.1-flash-live-preview"
	model38  = "models/gemini-3.8-live"
	// modelExtended thinks between its answers.
	modelExtended = "models/gemini-3.8-live-extended-thinking"
)

// pipeListener connects an http.Server and clients within the process, so that a synctest bubble controls every clock.
type pipeListener struct {
	// conns goes from dial to Accept; it is never closed.
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.done:
	case <-ctx.Done():
	}
	return nil, errors.Join(net.ErrClosed, ours.Close(), theirs.Close())
}

// bench is a simulator for a test.
type bench struct {
	t    *testing.T
	h    *Handler
	http *http.Client
}

func newBench(t *testing.T, o wire.Options) *bench {
	t.Helper()
	ln := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	h := New(o)
	srv := &http.Server{Handler: h}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(ln) })
	tr := &http.Transport{DialContext: ln.dial}
	t.Cleanup(func() {
		if err := h.opts.Group.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		tr.CloseIdleConnections()
		_ = srv.Close()
		served.Wait()
	})
	return &bench{t: t, h: h, http: &http.Client{Transport: tr}}
}

// client is a WebSocket to the simulator.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

func (b *bench) dial(path string, header http.Header) *client {
	b.t.Helper()
	ws, _, err := websocket.Dial(context.Background(), "ws://sim"+path, &websocket.DialOptions{
		HTTPClient: b.http, HTTPHeader: header,
	})
	if err != nil {
		b.t.Fatalf("dial %s: %v", path, err)
	}
	ws.SetReadLimit(32 << 20)
	c := &client{b.t, ws}
	b.t.Cleanup(func() { _ = ws.CloseNow() })
	return c
}

// open dials and sends the setup.
func (b *bench) open(setup string) *client {
	b.t.Helper()
	c := b.dial(betaPath+"?key=test", nil)
	c.send(setup)
	if f := c.next(); f.key() != "setupComplete" {
		b.t.Fatalf("first frame: %s", f.raw)
	}
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.ws.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

func (c *client) sendJSON(v any) {
	c.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(b))
}

// received is one frame from the simulator.
type received struct {
	raw []byte
	val map[string]any
	at  time.Time
}

func (f received) key() string {
	var out []string
	for _, k := range []string{"setupComplete", "serverContent", "toolCall", "toolCallCancellation", "goAway",
		"sessionResumptionUpdate", "voiceActivity", "usageMetadata"} {
		if _, ok := f.val[k]; ok {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		out = slices.Sorted(maps.Keys(f.val))
	}
	return strings.Join(out, "+")
}

func (f received) content() map[string]any {
	m, _ := f.val["serverContent"].(map[string]any)
	return m
}

func (c *client) read(patience time.Duration) (received, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kind, data, err := c.ws.Read(ctx)
	if err != nil {
		return received{}, err
	}
	f := received{raw: data, at: time.Now()}
	if kind != websocket.MessageBinary {
		c.t.Errorf("frame is %v, the provider sends binary: %s", kind, data)
	}
	if err := json.Unmarshal(data, &f.val); err != nil {
		c.t.Errorf("frame is not JSON: %v: %s", err, data)
	}
	if !strings.HasSuffix(string(data), "}\n") || (len(f.val) > 0 && !strings.HasPrefix(string(data), "{\n  \"")) {
		c.t.Errorf("frame is not laid out as the provider does: %q", data[:min(len(data), 80)])
	}
	return f, nil
}

func (c *client) next() received {
	c.t.Helper()
	f, err := c.read(2 * time.Hour)
	if err != nil {
		c.t.Fatalf("receive: %v", err)
	}
	return f
}

// untilTurn collects frames up to turnComplete, without checks.
func (c *client) untilTurn() []received {
	c.t.Helper()
	var out []received
	for {
		f := c.next()
		out = append(out, f)
		if f.content()["turnComplete"] == true {
			return out
		}
	}
}

// closed waits for the close frame, and skips other frames.
func (c *client) closed() websocket.CloseError {
	c.t.Helper()
	for {
		_, err := c.read(2 * time.Hour)
		if err == nil {
			continue
		}
		var ce websocket.CloseError
		if !errors.As(err, &ce) {
			c.t.Fatalf("connection ended without a close frame: %v", err)
		}
		return ce
	}
}

func collapses(n string) bool { return n == "speech" || n == "input" }

// name is a frame in one word; empty for 3.8's empty messages.
func name(f received) string {
	c, isContent := f.val["serverContent"].(map[string]any)
	if !isContent {
		return f.key()
	}
	n := "{}"
	switch {
	case c["modelTurn"] != nil && strings.Contains(string(f.raw), `"thought": true`):
		n = "thought"
	case c["modelTurn"] != nil || c["outputTranscription"] != nil:
		n = "speech"
	case c["inputTranscription"] != nil:
		n = "input"
	case c["generationComplete"] != nil:
		n = "generationComplete"
	case c["interrupted"] != nil:
		n = "interrupted"
	case c["turnComplete"] != nil:
		n = "turnComplete"
	}
	if f.val["voiceActivity"] != nil {
		n += "+voiceActivity"
	}
	if f.val["usageMetadata"] != nil {
		n += "+usage"
	}
	return n
}

// said joins the transcript.
func said(frames []received) string {
	var b strings.Builder
	for _, f := range frames {
		if tr, ok := f.content()["outputTranscription"].(map[string]any); ok {
			text, _ := tr["text"].(string)
			b.WriteString(text)
		}
		if turn, ok := f.content()["modelTurn"].(map[string]any); ok {
			first, _ := turn["parts"].([]any)[0].(map[string]any)
			text, _ := first["text"].(string)
			b.WriteString(text)
		}
	}
	return b.String()
}

// sharedDir finds the recordings; a test without them is skipped.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			shared := filepath.Join(filepath.Dir(dir), "shared")
			if _, err := os.Stat(shared); err == nil {
				return shared
			}
			break
		}
	}
	t.Skip("no ../shared next to the repository: the recordings are missing")
	return ""
}

func setupFor(model string, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"setup":{"model":"` + model + `","generationConfig":{"responseModalities":["AUDIO"]},` +
		`"inputAudioTranscription":{},"outputAudioTranscription":{}` + more + `}}`
}

func typed(text string) string {
	b, _ := json.Marshal(text)
	return `{"clientContent":{"turns":[{"role":"user","parts":[{"text":` + string(b) + `}]}],"turnComplete":true}}`
}
