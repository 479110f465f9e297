package live

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/audio"
	"voicegw/internal/livewire"
	"voicegw/internal/testutil"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// got is a received event: parsed, raw, and its time.
type got struct {
	livewire.ServerEvent

	raw  []byte
	when time.Duration
}

// client is a test's end of a connection. A goroutine collects the events.
type client struct {
	t     *testing.T
	ws    *websocket.Conn
	begun time.Time

	mu   sync.Mutex // guards the following fields
	all  []got
	err  error
	seen int // taken by the test
}

// rig is a server under a fake clock.
type rig struct {
	t     *testing.T
	http  *http.Client
	stats *wire.Stats
}

// bubble runs a test with a server under a fake clock, and stops the server.
func bubble(t *testing.T, o wire.Options, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Group, o.Stats = &wire.Group{}, &wire.Stats{}
		l := testutil.ListenPipe()
		srv := &http.Server{Handler: New(o)}
		var work sync.WaitGroup
		work.Go(func() { _ = srv.Serve(l) })
		tr := &http.Transport{DialContext: l.Dial, DisableKeepAlives: true}
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := o.Group.Close(ctx); err != nil {
				t.Errorf("open connections: %v", err)
			}
			_ = srv.Close()
			tr.CloseIdleConnections()
			work.Wait()
		}()
		test(&rig{t: t, http: &http.Client{Transport: tr}, stats: o.Stats})
	})
}

func (r *rig) dial(path, key string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return websocket.Dial(context.Background(), "http://sim"+path, &websocket.DialOptions{HTTPClient: r.http, HTTPHeader: h})
}

// connect opens a connection without a session.
func (r *rig) connect(path string) *client {
	r.t.Helper()
	ws, _, err := r.dial(path, "sk-test")
	if err != nil {
		r.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	c := &client{t: r.t, ws: ws, begun: time.Now()}
	var work sync.WaitGroup
	work.Go(c.collect)
	r.t.Cleanup(func() { _ = ws.CloseNow(); work.Wait() })
	return c
}

// open starts a session; more has additional members of its object.
func (r *rig) open(more ...string) *client {
	r.t.Helper()
	c := r.connect(livewire.Path)
	c.send(`{"type":"session.start","event_id":"s","session":{` + strings.Join(append([]string{`"model":"gpt-live-1"`}, more...), ",") + `}}`)
	if first := c.take(0); len(first) == 0 || first[0].Type != livewire.Started {
		r.t.Fatalf("got %s", kinds(first))
	}
	return c
}

func (c *client) collect() {
	for {
		_, data, err := c.ws.Read(context.Background())
		c.mu.Lock()
		if err != nil {
			c.err = err
			c.mu.Unlock()
			return
		}
		e, err := livewire.ParseServerEvent(data)
		if err != nil {
			e.Type = "(unreadable)"
		}
		c.all = append(c.all, got{e, data, time.Since(c.begun)})
		c.mu.Unlock()
	}
}

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
func (c *client) take(d time.Duration) []got {
	pass(d)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.all[c.seen:]
	c.seen = len(c.all)
	return out
}

// speak sends audio in pieces of 100 ms in real time, and returns the events of that time.
func (c *client) speak(pcm []byte) []got {
	c.t.Helper()
	for len(pcm) > 0 {
		n := min(4800, len(pcm))
		c.send(string(livewire.AppendAudio(nil, pcm[:n])))
		pcm = pcm[n:]
		pass(100 * time.Millisecond)
	}
	return c.take(0)
}

// quiet sends silence in real time.
func (c *client) quiet(d time.Duration) []got {
	c.t.Helper()
	return c.speak(make([]byte, audio.Bytes(24000, d)))
}

// closed returns the close code of the connection; 0 if it is open.
func (c *client) closed() int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var ce websocket.CloseError
	switch {
	case c.err == nil:
		return 0
	case errors.As(c.err, &ce):
		return int(ce.Code)
	}
	return 1006
}

// kinds returns the types of events in order, without the prefix session., audio and repeats.
func kinds(list []got) string {
	var out []string
	for _, e := range list {
		k := strings.TrimPrefix(e.Type, "session.")
		if n := len(out); e.Type == livewire.AudioDelta || n > 0 && out[n-1] == k {
			continue
		}
		out = append(out, k)
	}
	return strings.Join(out, " ")
}

// find returns the first event of a type, or an empty one.
func find(list []got, kind string) got {
	for _, e := range list {
		if e.Type == kind {
			return e
		}
	}
	return got{}
}

// words returns the joined fragments of a transcript.
func words(list []got, kind string) string {
	var b strings.Builder
	for _, e := range list {
		if e.Type == kind {
			b.WriteString(e.Delta)
		}
	}
	return b.String()
}

// sounds counts all pieces of the track, and the loud ones.
func sounds(t *testing.T, list []got) (all, loud int) {
	t.Helper()
	for _, e := range list {
		if e.Type != livewire.AudioDelta {
			continue
		}
		pcm, err := base64.StdEncoding.DecodeString(string(e.Sound))
		if err != nil || len(pcm) != 4800 {
			t.Fatalf("a piece of %d bytes: %v", len(pcm), err)
		}
		all++
		if strings.Trim(string(pcm), "\x00") != "" {
			loud++
		}
	}
	return all, loud
}

var sentence = sync.OnceValue(func() []byte {
	return voice.New(voice.Options{}).Speak("This is a sentence that a person says to the machine, and it goes on for quite a while so that there is enough of it.").PCM
})

// sound returns PCM at 24 kHz: speech, then silence, of the given lengths.
func sound(speech, after time.Duration) []byte {
	pcm := sentence()[:min(audio.Bytes(24000, speech), len(sentence()))]
	return append(pcm[:len(pcm):len(pcm)], make([]byte, audio.Bytes(24000, after))...)
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
	s, err := scenario.ParseFaults("faults.yaml", []byte("faults: ["+text+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(kind, content, delegation string) string {
	e, err := livewire.ClientEvent{Type: kind, ID: "e-" + kind, Content: content, Delegation: delegation}.Encode()
	if err != nil {
		return err.Error()
	}
	return string(e)
}
