package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// lateFrame is the gap from which a frame counts as late: they arrive every 20 ms.
const lateFrame = 60 * time.Millisecond

// BenchmarkTraces runs TRACES_SESSIONS (200) sessions for TRACES_FOR (10s) with each kind of collector, and
// concurrently as many with a second gateway process without traces. Each session has a turn a second, and all are
// recorded. It prints for both gateways the number of late frames, the largest gap, and the process's CPU.
func BenchmarkTraces(b *testing.B) {
	sessions, lasting := 200, 10*time.Second
	var err error
	if s := os.Getenv("TRACES_SESSIONS"); s != "" {
		if sessions, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	if s := os.Getenv("TRACES_FOR"); s != "" {
		if lasting, err = time.ParseDuration(s); err != nil {
			b.Fatal(err)
		}
	}
	for _, kind := range []string{"none", "good", "slow", "refuses", "hangs"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				benchTraces(b, kind, sessions, lasting)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// collectorOf opens a collector of a kind and returns its endpoint; empty for none.
func collectorOf(b *testing.B, kind string) string {
	b.Helper()
	answers := func(wait time.Duration, status int) string {
		over := make(chan struct{}) // closed at the end
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(wait):
			case <-over:
			case <-r.Context().Done():
			}
			w.WriteHeader(status)
		}))
		b.Cleanup(func() {
			close(over)
			srv.Close()
		})
		return srv.URL + "/v1/traces"
	}
	switch kind {
	case "good":
		return answers(0, http.StatusOK)
	case "slow":
		return answers(4*time.Second, http.StatusOK)
	case "refuses":
		return answers(0, http.StatusForbidden)
	case "hangs": // accepts connections and sends nothing
		l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close() })
		return "http://" + l.Addr().String() + "/v1/traces"
	}
	return ""
}

// benchTraces measures one kind of collector against a gateway without one.
func benchTraces(b *testing.B, kind string, sessions int, lasting time.Duration) {
	b.Helper()
	srv := turningProvider()
	defer srv.Close()
	sides := []*tracedSide{{}, {}}
	for i, endpoint := range []string{"", collectorOf(b, kind)} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), strings.TrimSuffix(relayEnv+"=openai "+srv.URL+" traces="+endpoint, " traces="))
		sides[i].relay = startedRelay(b, cmd)
		for range sessions {
			t := &talker{conn: benchClient(b, sides[i].relay.url, 24000)}
			defer t.conn.Abort()
			sides[i].talkers = append(sides[i].talkers, t)
		}
	}
	cpu := []time.Duration{sides[0].relay.cpu(b), sides[1].relay.cpu(b)}
	until := time.Now().Add(lasting)
	var talk sync.WaitGroup
	for _, side := range sides {
		for _, t := range side.talkers {
			talk.Go(func() { side.listen(t, until) })
			talk.Go(func() { t.talk(until, make([]byte, 24000/50*2)) })
		}
	}
	talk.Wait()
	for i, name := range []string{"without traces", kind} {
		side := sides[i]
		now, err := side.relay.ask("now")
		if err != nil {
			b.Fatal(err)
		}
		slices.Sort(side.gaps)
		b.Logf("%-14s %7d frames, %4d late (%.3f %%), largest gap %s, CPU %.1f s, spans: %d sent, %d failed, %d dropped, %d waiting", name, side.frames, side.late,
			100*float64(side.late)/float64(max(side.frames, 1)), slices.Max(append(side.gaps, 0)).Round(time.Millisecond), (side.relay.cpu(b) - cpu[i]).Seconds(), now.Traces.Sent, now.Traces.Failed, now.Traces.Dropped, now.Traces.Waiting)
		b.ReportMetric(float64(side.late), "late-"+[]string{"without", "with"}[i])
	}
}

// tracedSide is a gateway and its talkers.
type tracedSide struct {
	relay   *relay
	talkers []*talker

	mu     sync.Mutex // guards the following fields
	frames int
	late   int
	gaps   []time.Duration // the largest gap of each talker
}

// listen counts a talker's frames.
func (s *tracedSide) listen(t *talker, until time.Time) {
	stop := time.AfterFunc(time.Until(until), t.conn.Abort)
	defer stop.Stop()
	frames, late, gap, last := 0, 0, time.Duration(0), time.Time{}
	for {
		f, err := t.conn.Read()
		if err != nil {
			break
		}
		if !f.Audio {
			continue
		}
		now := time.Now()
		if frames++; !last.IsZero() {
			if now.Sub(last) > lateFrame {
				late++
			}
			gap = max(gap, now.Sub(last))
		}
		last = now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames, s.late, s.gaps = s.frames+frames, s.late+late, append(s.gaps, gap)
}

// turnFrames is one second, a turn of turningProvider.
const turnFrames = 50

// turningProvider speaks OpenAI's wire like echoProvider, and every second hears the user: the answer ends and another
// turn begins.
func turningProvider() *httptest.Server {
	pcm := base64.StdEncoding.EncodeToString(make([]byte, 24000/50*2))
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(1 << 20)
		ctx := context.Background()
		hello := `{"type":"session.created","event_id":"e","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime","audio":{"input":{},"output":{}}}}`
		ok := true
		send := func(form string, with ...any) {
			ok = ok && ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, form, with...)) == nil
		}
		send("%s", hello)
		if _, _, err := ws.Read(ctx); err != nil {
			return
		}
		send("%s", strings.Replace(hello, "created", "updated", 1))
		audio := []byte(nil)
		for n := 0; ok; {
			_, data, err := ws.Read(ctx)
			if err != nil {
				return
			}
			if !strings.Contains(string(data[:min(len(data), 80)]), "input_audio_buffer.append") {
				continue
			}
			if n%turnFrames == 0 {
				turn, ms := n/turnFrames, n*20
				if turn > 0 {
					send(`{"type":"input_audio_buffer.speech_started","event_id":"e","item_id":"u_%d","audio_start_ms":%d}`, turn, max(ms-200, 0))
					send(`{"type":"response.done","event_id":"e","response":{"id":"resp_%d","status":"cancelled","status_details":{"type":"cancelled","reason":"turn_detected"},"usage":{"total_tokens":30,"input_tokens":20,"output_tokens":10}}}`, turn)
					send(`{"type":"input_audio_buffer.speech_stopped","event_id":"e","item_id":"u_%d","audio_end_ms":%d}`, turn, ms)
					send(`{"type":"input_audio_buffer.committed","event_id":"e","item_id":"u_%d","previous_item_id":null}`, turn)
				}
				send(`{"type":"response.created","event_id":"e","response":{"id":"resp_%d","status":"in_progress"}}`, turn+1)
				audio = fmt.Appendf(nil, `{"type":"response.output_audio.delta","event_id":"e","response_id":"resp_%d","item_id":"item_%d","output_index":0,"content_index":0,"delta":"%s"}`, turn+1, turn+1, pcm)
			}
			n++
			ok = ok && ws.Write(ctx, websocket.MessageText, audio) == nil
		}
	}))
}
