package openai

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// event is a server event as received.
type event map[string]any

func (e event) kind() string { s, _ := e["type"].(string); return s }

// at looks into an event: at("response.usage.total_tokens"), at("response.output.0.id").
func (e event) at(path string) any {
	var v any = map[string]any(e)
	for _, key := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i := int(key[0] - '0')
			if i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func (e event) text(path string) string { s, _ := e.at(path).(string); return s }

func (e event) num(path string) float64 { f, _ := e.at(path).(float64); return f }

// received is an event and its time.
type received struct {
	event
	raw  []byte
	when time.Duration
}

// client is a test's end of a connection. A goroutine collects the events; the test reads them when the bubble is idle.
type client struct {
	t     *testing.T
	ws    *websocket.Conn
	begun time.Time

	mu   sync.Mutex // guards the following fields
	all  []received
	err  error
	seen int // taken by the test
}

// rig is a server under a fake clock.
type rig struct {
	t     *testing.T
	h     *Handler
	http  *http.Client
	stats *wire.Stats
}

// bubble runs a test with a server under a fake clock, and ends both.
func bubble(t *testing.T, o wire.Options, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Group, o.Stats = &wire.Group{}, &wire.Stats{}
		l := testutil.ListenPipe()
		r := &rig{t: t, h: New(o), stats: o.Stats}
		srv := &http.Server{Handler: r.h}
		var work sync.WaitGroup
		work.Go(func() { _ = srv.Serve(l) })
		tr := &http.Transport{DialContext: l.Dial, DisableKeepAlives: true}
		r.http = &http.Client{Transport: tr}
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := o.Group.Close(ctx); err != nil {
				t.Errorf("connections are left: %v", err)
			}
			if held := r.h.held.Load(); held != 0 {
				t.Errorf("%d bytes of audio of ended conversations remain", held)
			}
			_ = srv.Close()
			tr.CloseIdleConnections()
			work.Wait()
		}()
		test(r)
	})
}

// dial opens a connection; header is names and values in turn.
func (r *rig) dial(path string, header ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{"Authorization": {"Bearer sk-test"}}
	var protocols []string
	for i := 0; i+1 < len(header); i += 2 {
		switch {
		case header[i] == "Protocols":
			protocols = strings.Split(header[i+1], ", ")
			h.Del("Authorization")
		case header[i+1] == "":
			h.Del(header[i])
		default:
			h.Set(header[i], header[i+1])
		}
	}
	return websocket.Dial(context.Background(), "http://sim"+path, &websocket.DialOptions{HTTPClient: r.http, HTTPHeader: h, Subprotocols: protocols})
}

// connect opens a session; path is such as "/v1/realtime?model=gpt-realtime".
func (r *rig) connect(path string, header ...string) *client {
	r.t.Helper()
	ws, _, err := r.dial(path, header...)
	if err != nil {
		r.t.Fatalf("connect %s: %v", path, err)
	}
	ws.SetReadLimit(-1)
	c := &client{t: r.t, ws: ws, begun: time.Now()}
	var work sync.WaitGroup
	work.Go(c.collect)
	r.t.Cleanup(func() { _ = ws.CloseNow(); work.Wait() })
	return c
}

func (r *rig) open() *client { return r.connect("/v1/realtime?model=gpt-realtime") }

func (c *client) collect() {
	for {
		_, data, err := c.ws.Read(context.Background())
		c.mu.Lock()
		if err != nil {
			c.err = err
			c.mu.Unlock()
			return
		}
		e := event{}
		if json.Unmarshal(data, &e) != nil {
			e = event{"type": "(not json)"}
		}
		c.all = append(c.all, received{e, data, time.Since(c.begun)})
		c.mu.Unlock()
	}
}

// send sends events, each a JSON text.
func (c *client) send(events ...string) {
	c.t.Helper()
	for _, e := range events {
		if err := c.ws.Write(context.Background(), websocket.MessageText, []byte(e)); err != nil {
			c.t.Fatalf("send %.80s: %v", e, err)
		}
	}
}

func pass(d time.Duration) { <-time.After(d) }

// take waits d and returns the events since the last take.
func (c *client) take(d time.Duration) []received {
	pass(d)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.all[c.seen:]
	c.seen = len(c.all)
	return out
}

// until waits for an event of that type, at most a minute, and returns the events up to it.
func (c *client) until(kind string) []received {
	c.t.Helper()
	for range 6000 {
		synctest.Wait()
		c.mu.Lock()
		for i := c.seen; i < len(c.all); i++ {
			if c.all[i].kind() == kind {
				out := c.all[c.seen : i+1]
				c.seen = i + 1
				c.mu.Unlock()
				return out
			}
		}
		c.mu.Unlock()
		pass(10 * time.Millisecond)
	}
	c.t.Fatalf("no %s; got %s", kind, kinds(c.take(0)))
	return nil
}

// closed waits for the end of the connection.
func (c *client) closed(within time.Duration) (code int, reason string) {
	c.t.Helper()
	pass(within)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.t.Fatal("the connection is open")
	}
	var ce websocket.CloseError
	if errors.As(c.err, &ce) {
		return int(ce.Code), ce.Reason
	}
	return 1006, ""
}

// over returns the reason of the connection's end; nil if it is open.
func (c *client) over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// kinds are the types of events in order, repeats collapsed.
func kinds(list []received) string {
	var out []string
	for _, e := range list {
		k := e.kind()
		if n := len(out); n > 0 && out[n-1] == k {
			continue
		}
		out = append(out, k)
	}
	return strings.Join(out, " ")
}

// find is the first event of a type, or an empty one.
func find(list []received, kind string) event {
	for _, e := range list {
		if e.kind() == kind {
			return e.event
		}
	}
	return event{}
}

// sound is PCM at 24 kHz: speech with silence before and after.
func sound(before, speech, after time.Duration) []byte {
	line := voice.New(voice.Options{}).Speak("This is a sentence that a person says to the machine, and it goes on for quite a while so that there is enough of it.")
	pcm := make([]byte, audio.Bytes(24000, before))
	pcm = append(pcm, line.PCM[:min(audio.Bytes(24000, speech), len(line.PCM))]...)
	return append(pcm, make([]byte, audio.Bytes(24000, after))...)
}

// speak appends PCM at 24 kHz in pieces of 100 ms, in real time when paced.
func (c *client) speak(pcm []byte, paced bool) {
	c.t.Helper()
	for len(pcm) > 0 {
		n := min(4800, len(pcm))
		c.send(`{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(pcm[:n]) + `"}`)
		pcm = pcm[n:]
		if paced {
			pass(100 * time.Millisecond)
		}
	}
}

// shared is a file next to the repository; without it the test is skipped.
func shared(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	name := filepath.Join(dir, "..", "shared", path)
	if _, err := os.Stat(name); err != nil {
		t.Skipf("%s is missing", path)
	}
	return name
}

// wav reads a file of the shared folder as PCM at 24 kHz.
func wav(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(shared(t, path))
	if err != nil {
		t.Fatal(err)
	}
	clip, err := audio.ReadWAV(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	rs, err := audio.NewResampler(clip.Rate, 24000)
	if err != nil {
		t.Fatal(err)
	}
	return rs.Flush(rs.Process(nil, clip.PCM))
}

func script(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func faults(t *testing.T, text string) *scenario.FaultScript {
	t.Helper()
	s, err := scenario.ParseFaults("faults.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends a body to an HTTP endpoint and returns status and answer.
func (r *rig) post(path, key, body string) (int, event) {
	r.t.Helper()
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, req)
	e := event{}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		r.t.Fatalf("%s answers %q", path, w.Body.String())
	}
	return w.Code, e
}
