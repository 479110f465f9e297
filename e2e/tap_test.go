package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/testutil"
)

// tap is between the gateway and the provider and records the gateway's output without audio.
type tap struct {
	url    string
	client *http.Client // reaches url

	mu       sync.Mutex // guards the following fields
	said     []map[string]any
	noted    time.Time   // when the provider last reported an interruption
	up, down []time.Time // times of audio, to the provider and from it
	keep     bool        // sound gets the provider's audio, PCM at 24 kHz
	sound    []byte
}

func newTap(t testing.TB, provider http.Handler, timed bool) *tap {
	t.Helper()
	upstream, reach := newServer(provider, timed)
	upstream.Start()
	tp := &tap{}
	srv, client := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // to a text model
			provider.ServeHTTP(w, r)
			return
		}
		tp.relay(w, r, upstream.URL, reach)
	}), timed)
	srv.Start()
	tp.url, tp.client = srv.URL, client
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		upstream.CloseClientConnections()
		upstream.Close()
	})
	return tp
}

// newServer starts a server on this machine or, with fake time, on an in-memory network, and returns a client for it.
func newServer(h http.Handler, timed bool) (*httptest.Server, *http.Client) {
	srv := httptest.NewUnstartedServer(h)
	if !timed {
		return srv, http.DefaultClient
	}
	_ = srv.Listener.Close()
	in := testutil.ListenPipe()
	srv.Listener = in
	return srv, &http.Client{Transport: &http.Transport{DialContext: in.Dial, DisableKeepAlives: true}}
}

// relay dials first, so that the gateway sees a refusal of the provider.
func (tp *tap) relay(w http.ResponseWriter, r *http.Request, upstream string, reach *http.Client) {
	up, resp, err := websocket.Dial(r.Context(), upstream+r.URL.RequestURI(), &websocket.DialOptions{HTTPClient: reach, HTTPHeader: upgradeFree(r.Header)})
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
	both.Go(func() { pass(down, up, noting(tp.note)) })
	both.Go(func() { pass(up, down, noting(tp.noteHeard)) })
	both.Wait()
}

// noting adapts an observer of frames for pass, with unchanged frames.
func noting(note func([]byte)) func([]byte) []byte {
	return func(data []byte) []byte { note(data); return data }
}

// pass copies frames, as returned by change, until one side ends, and forwards the close code.
func pass(from, to *websocket.Conn, change func([]byte) []byte) {
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
		if to.Write(context.Background(), typ, change(data)) != nil {
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

// noteHeard records the times of the provider's interruption reports and audio.
func (tp *tap) noteHeard(data []byte) {
	interrupts := bytes.Contains(data, []byte(`"interrupted"`)) || bytes.Contains(data, []byte(`speech_started"`))
	speaks := bytes.Contains(data, []byte(`output_audio.delta"`)) || bytes.Contains(data, []byte(`"inlineData"`))
	if !interrupts && !speaks {
		return
	}
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if interrupts {
		tp.noted = time.Now()
	}
	if speaks {
		tp.down = append(tp.down, time.Now())
		if tp.keep {
			tp.sound = append(tp.sound, soundOf(data)...)
		}
	}
}

// all returns the gateway's output so far.
func (tp *tap) all() []map[string]any {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return slices.Clone(tp.said)
}

func (tp *tap) lastNote() time.Time {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.noted
}

func (tp *tap) note(data []byte) {
	var m map[string]any
	if json.Unmarshal(data, &m) != nil {
		return
	}
	rt, _ := m["realtimeInput"].(map[string]any)
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if m["type"] == "input_audio_buffer.append" || rt["audio"] != nil {
		tp.up = append(tp.up, time.Now())
		return
	}
	tp.said = append(tp.said, m)
}

// wait returns the gateway's first matching message.
func (tp *tap) wait(t testing.TB, what string, fits func(map[string]any) bool) map[string]any {
	t.Helper()
	var found map[string]any
	testutil.WaitUntil(t, "the gateway says "+what+" to the provider", func() bool {
		all := tp.all()
		i := slices.IndexFunc(all, fits)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// soundOf returns the audio of a provider's message.
func soundOf(data []byte) (pcm []byte) {
	var m struct {
		Delta         []byte
		ServerContent struct {
			ModelTurn struct {
				Parts []struct {
					InlineData struct{ Data []byte }
				}
			}
		}
	}
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	pcm = m.Delta
	for _, p := range m.ServerContent.ModelTurn.Parts {
		pcm = append(pcm, p.InlineData.Data...)
	}
	return pcm
}
