package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// tap stands between the gateway and the provider and keeps what the gateway
// says, audio left out.
type tap struct {
	url string

	mu    sync.Mutex // guards the following fields
	said  []map[string]any
	noted time.Time // when the provider last noted an interruption
}

func newTap(t testing.TB, provider http.Handler) *tap {
	t.Helper()
	upstream := httptest.NewServer(provider)
	tp := &tap{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tp.relay(w, r, upstream.URL) }))
	tp.url = srv.URL
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		upstream.CloseClientConnections()
		upstream.Close()
	})
	return tp
}

// relay dials first, so that a refusal of the provider reaches the gateway as it is.
func (tp *tap) relay(w http.ResponseWriter, r *http.Request, upstream string) {
	up, resp, err := websocket.Dial(r.Context(), upstream+r.URL.RequestURI(), &websocket.DialOptions{HTTPHeader: upgradeFree(r.Header)})
	if err != nil {
		status := http.StatusBadGateway
		if resp != nil && resp.StatusCode >= 300 {
			status = resp.StatusCode
		}
		w.WriteHeader(status)
		return
	}
	defer up.CloseNow()
	down, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{up.Subprotocol()}})
	if err != nil {
		return
	}
	defer down.CloseNow()
	var both sync.WaitGroup
	both.Go(func() { pass(down, up, tp.note) })
	both.Go(func() { pass(up, down, tp.noteInterruption) })
	both.Wait()
}

// pass copies frames until one side ends, and tells the other side the close code.
func pass(from, to *websocket.Conn, note func([]byte)) {
	from.SetReadLimit(64 << 20)
	for {
		typ, data, err := from.Read(context.Background())
		if err != nil {
			if code := websocket.CloseStatus(err); code > 0 {
				to.Close(code, "relayed")
			}
			to.CloseNow()
			return
		}
		note(data)
		if to.Write(context.Background(), typ, data) != nil {
			from.CloseNow()
			return
		}
	}
}

func upgradeFree(h http.Header) http.Header {
	out := http.Header{}
	for k, v := range h {
		if !strings.HasPrefix(k, "Sec-Websocket") && k != "Connection" && k != "Upgrade" {
			out[k] = v
		}
	}
	return out
}

// noteInterruption keeps when the provider last said that the user interrupts.
func (tp *tap) noteInterruption(data []byte) {
	if bytes.Contains(data, []byte(`"interrupted"`)) || bytes.Contains(data, []byte(`speech_started"`)) {
		tp.mu.Lock()
		tp.noted = time.Now()
		tp.mu.Unlock()
	}
}

func (tp *tap) lastNote() time.Time {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.noted
}

func (tp *tap) note(data []byte) {
	var m map[string]any
	if json.Unmarshal(data, &m) != nil || m["type"] == "input_audio_buffer.append" {
		return
	}
	if rt, ok := m["realtimeInput"].(map[string]any); ok && rt["audio"] != nil {
		return
	}
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.said = append(tp.said, m)
}

// wait returns the first thing the gateway said that fits.
func (tp *tap) wait(t *testing.T, what string, fits func(map[string]any) bool) map[string]any {
	t.Helper()
	for range time.Tick(5 * time.Millisecond) {
		tp.mu.Lock()
		for _, m := range tp.said {
			if fits(m) {
				tp.mu.Unlock()
				return m
			}
		}
		tp.mu.Unlock()
		if t.Context().Err() != nil {
			break
		}
	}
	t.Fatalf("the gateway never said %s to the provider", what)
	return nil
}
