package web

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// recorder is an audio worklet for the tests: it tells, for every block that
// sounds, its first frame and the index of its last audible sample.
const recorder = `registerProcessor("tap", class extends AudioWorkletProcessor {
	process(inputs) {
		const block = inputs[0][0];
		if (block) {
			let last = -1;
			block.forEach((x, i) => { if (Math.abs(x) > 1e-3) last = i; });
			if (last >= 0) this.port.postMessage(currentFrame + last);
		}
		return true;
	}
});`

// gateway is a fake of the real one: it serves the page and lets a test play
// the gateway's part of voicegw.v1 by hand.
type gateway struct {
	url string
	// stop ends the server; it cannot be reached any more.
	stop func()
	// visits holds each session that was opened; from the handler, to the
	// test, closed by nobody. Room for more than any test opens.
	visits chan *visit
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{visits: make(chan *visit, 8)}
	mux := http.NewServeMux()
	mux.Handle("/", Handler())
	mux.HandleFunc("/v1/voice", g.serve)
	mux.HandleFunc("GET /v1/providers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"default":"gemini","providers":[{"name":"gemini","model":"gemini-3.1-live"},{"name":"openai","model":"gpt-realtime"}]}`)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {})
	mux.HandleFunc("GET /test/recorder.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, recorder)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	g.stop = server.Close
	g.url = server.URL
	return g
}

func (g *gateway) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"voicegw.v1"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	v := &visit{
		conn:        conn,
		subprotocol: conn.Subprotocol(),
		texts:       make(chan message, 4096),
		frames:      make(chan struct{}, 1),
		gone:        make(chan struct{}),
	}
	defer close(v.gone)
	g.visits <- v
	for {
		kind, data, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		v.take(kind, data)
	}
}

// visit waits for the page's next session.
func (g *gateway) visit(t *testing.T) *visit {
	t.Helper()
	select {
	case v := <-g.visits:
		return v
	case <-time.After(patience):
		t.Fatal("the page opened no session")
		return nil
	}
}

// message is one text frame of the page.
type message map[string]any

// visit is one session of the page.
type visit struct {
	// Fixed after serve began.
	conn        *websocket.Conn
	subprotocol string
	// texts holds the page's messages; from the reader, to the test, closed
	// by nobody. Far more room than a test's few seconds need.
	texts chan message
	// frames tells that audio has come; from the reader, to the test, closed
	// by nobody. One note is enough for any number of frames.
	frames chan struct{}
	// gone is closed by the reader when the connection has ended.
	gone chan struct{}

	mu sync.Mutex // guards the following fields
	// audio is the uplink so far, arrivals the time of each frame and sizes
	// its length in samples.
	audio    []int16
	arrivals []time.Time
	sizes    []int
}

func (v *visit) take(kind websocket.MessageType, data []byte) {
	if kind == websocket.MessageText {
		var m message
		if json.Unmarshal(data, &m) != nil {
			m = message{"type": "not JSON: " + string(data)}
		}
		v.texts <- m
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := 0; i+1 < len(data); i += 2 {
		v.audio = append(v.audio, int16(binary.LittleEndian.Uint16(data[i:])))
	}
	v.arrivals = append(v.arrivals, time.Now())
	v.sizes = append(v.sizes, len(data)/2)
	select {
	case v.frames <- struct{}{}:
	default:
	}
}

// heard is a copy of the uplink so far.
func (v *visit) heard() (audio []int16, arrivals []time.Time, sizes []int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append(audio, v.audio...), append(arrivals, v.arrivals...), append(sizes, v.sizes...)
}

// await returns the page's next message that the test wants; others are
// passed over.
func (v *visit) await(t *testing.T, what string, want func(message) bool) message {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case m := <-v.texts:
			if want(m) {
				return m
			}
		case <-late:
			t.Fatalf("the page did not send %s", what)
		}
	}
}

func (v *visit) awaitType(t *testing.T, name string) message {
	t.Helper()
	return v.await(t, name, func(m message) bool { return m["type"] == name })
}

func (v *visit) awaitReport(t *testing.T, item string, done bool) message {
	t.Helper()
	return v.await(t, fmt.Sprintf("playback of %s, done %v", item, done), func(m message) bool {
		return m["type"] == "playback" && m["item_id"] == item && m["done"] == done
	})
}

// awaitAudio waits until the uplink so far is as the test wants it. It looks
// whenever a frame has come.
func (v *visit) awaitAudio(t *testing.T, what string, want func([]int16) bool) {
	t.Helper()
	late := time.After(patience)
	for {
		if audio, _, _ := v.heard(); want(audio) {
			return
		}
		select {
		case <-v.frames:
		case <-late:
			t.Fatalf("the page did not send %s", what)
		}
	}
}

// awaitGone waits for the end of the connection.
func (v *visit) awaitGone(t *testing.T) {
	t.Helper()
	select {
	case <-v.gone:
	case <-time.After(patience):
		t.Fatal("the page did not close its connection")
	}
}

func (v *visit) send(t *testing.T, messages ...message) {
	t.Helper()
	for _, m := range messages {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		v.write(t, websocket.MessageText, data)
	}
}

// sendTone sends so many milliseconds of a tone at 24 kHz, 40 ms per frame.
func (v *visit) sendTone(t *testing.T, ms int) {
	t.Helper()
	for frame := range ms / 40 {
		v.write(t, websocket.MessageBinary, pcmBytes(toneAt(24000, frame*960, 960)))
	}
}

func (v *visit) write(t *testing.T, kind websocket.MessageType, data []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := v.conn.Write(ctx, kind, data); err != nil {
		t.Fatal(err)
	}
}

// welcome takes the page's session.start and opens the session.
func (v *visit) welcome(t *testing.T) message {
	t.Helper()
	start := <-v.texts
	if start["type"] != "session.start" {
		t.Fatalf("the first frame is %v, want session.start", start)
	}
	provider, chosen := start["provider"]
	if !chosen {
		provider = "gemini"
	}
	v.send(t, message{
		"type": "session.started", "seq": 1, "session_id": "s1", "resume_token": "r", "provider": provider,
		"model": "gemini-3.1-live", "agent": "default", "tools_version": "1.0.0", "input_rate": start["input_rate"],
		"output_rate": start["output_rate"], "expires_at": "2026-11-20T11:00:00.000Z", "resumed": false,
	})
	return start
}
