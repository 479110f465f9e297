package e2e

import (
	"testing"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// sessionMemory is a session's use of the gateway's heap and stacks, in bytes.
type sessionMemory struct {
	idle, active, stack float64
	away                float64 // after the loss of its client
	opening             float64 // allocated at the start, most of it garbage at once
	goroutines          float64
}

// measureMemory runs sessions through a gateway process, idle and after frames of audio in both directions, without
// garbage.
func measureMemory(tb testing.TB, way relayWay, sessions, frames int) sessionMemory {
	tb.Helper()
	rate := way.rate()
	frame := make([]byte, rate/50*2)
	srv := echoProvider{pcm: frame}.start(tb)
	defer srv.Close()
	r := startRelay(tb, way.provider, srv.URL, way.secure)
	ask := func() relayMemory {
		m, err := r.ask("settle")
		if err != nil {
			tb.Fatal(err)
		}
		return m
	}
	clients := make([]*protocol.Conn, sessions)
	warm := benchClient(tb, r.url, rate) // shared structures of the first session
	defer warm.Abort()
	exchange(tb, warm, frame, frames)
	empty := ask()
	for i := range clients {
		clients[i] = benchClient(tb, r.url, rate)
		defer clients[i].Abort()
	}
	idle := ask()
	for _, c := range clients {
		exchange(tb, c, frame, frames)
		acknowledge(tb, c)
	}
	active := ask()
	for _, c := range clients {
		c.Abort()
	}
	warm.Abort()
	away, err := r.ask("away") // once the gateway has noticed
	if err != nil {
		tb.Fatal(err)
	}
	n := float64(sessions)
	return sessionMemory{
		idle:       (float64(idle.Heap) - float64(empty.Heap)) / n,
		active:     (float64(active.Heap) - float64(empty.Heap)) / n,
		away:       (float64(away.Heap) - float64(empty.Heap)) / n,
		stack:      (float64(active.Stack) - float64(empty.Stack)) / n,
		opening:    float64(idle.Allocated-empty.Allocated) / n,
		goroutines: float64(active.Goroutines-empty.Goroutines) / n,
	}
}

// acknowledge reports all audio as received, as clients do every 200 ms, and waits until the gateway has read it.
func acknowledge(tb testing.TB, c *protocol.Conn) {
	tb.Helper()
	for _, m := range []protocol.ClientMessage{&protocol.Playback{ItemID: "item_1", ReceivedMS: 1 << 30, Seq: 1 << 30}, &protocol.Ping{T: 1}} {
		text, err := protocol.EncodeClient(m)
		if err != nil {
			tb.Fatal(err)
		}
		if err := c.WriteText(text); err != nil {
			tb.Fatal(err)
		}
	}
	for {
		f, err := c.Read()
		if err != nil {
			tb.Fatal(err)
		}
		if m, err := protocol.ParseServer(f.Data); !f.Audio && err == nil {
			if _, ok := m.(*protocol.Pong); ok {
				return
			}
		}
	}
}

// exchange sends frames and waits for as many.
func exchange(tb testing.TB, c *protocol.Conn, frame []byte, frames int) {
	tb.Helper()
	for range frames {
		if err := c.WriteAudio(frame); err != nil {
			tb.Fatal(err)
		}
		for {
			f, err := c.Read()
			if err != nil {
				tb.Fatal(err)
			}
			if f.Audio {
				break
			}
		}
	}
}

// BenchmarkSessionMemory reports a session's memory, idle and after audio in both directions, on each wire.
func BenchmarkSessionMemory(b *testing.B) {
	for _, way := range relayWays {
		b.Run(way.name(), func(b *testing.B) {
			for b.Loop() {
				m := measureMemory(b, way, 400, 20)
				b.ReportMetric(m.idle/1024, "KB-heap/idle-session")
				b.ReportMetric(m.active/1024, "KB-heap/active-session")
				b.ReportMetric(m.away/1024, "KB-heap/away-session")
				b.ReportMetric(m.opening/1024, "KB-allocated/opening")
				b.ReportMetric(m.stack/1024, "KB-stack/session")
				b.ReportMetric(m.goroutines, "goroutines/session")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestSessionStaysSmall limits a session's memory and the allocations of its start, on each wire, a little above the
// measurements in docs/capacity.md. On a busy machine a session also contains queued audio, so the smallest of a few
// measurements counts.
func TestSessionStaysSmall(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector uses memory of its own; scripts/test-norace.sh runs this test without it")
	}
	const tries = 5
	for _, way := range relayWays {
		t.Run(way.name(), func(t *testing.T) {
			more, handshake := 0.0, 0.0
			if way.secure {
				more, handshake = 8<<10, 60<<10
			}
			bounds := []struct {
				what string
				of   func(sessionMemory) float64
				most float64
			}{
				{"an idle session uses", func(m sessionMemory) float64 { return m.idle }, 12<<10 + more},
				{"a session with audio in both directions uses", func(m sessionMemory) float64 { return m.active }, 16<<10 + more},
				{"a session with a disconnected client uses", func(m sessionMemory) float64 { return m.away }, 16 << 10},
				{"beginning a session allocates", func(m sessionMemory) float64 { return m.opening }, 64<<10 + handshake},
				{"the goroutines of a session that is idle", func(m sessionMemory) float64 { return m.goroutines }, 0.5},
			}
			for try := 1; len(bounds) > 0; try++ {
				m := measureMemory(t, way, 150, 10)
				kept := bounds[:0]
				for _, b := range bounds {
					if b.of(m) > b.most {
						kept = append(kept, b)
					}
				}
				if bounds = kept; try == tries {
					for _, b := range bounds {
						t.Errorf("%s: %.1f, want at most %.1f", b.what, b.of(m), b.most)
					}
					return
				}
			}
		})
	}
}
