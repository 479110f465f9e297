package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/protocol"
)

const (
	talking  = 20 // talking sessions, each 20 ms of audio every 20 ms
	flooding = 2  // flooding connections; a closed one reconnects
)

// BenchmarkFloods runs talking sessions during floods of each kind, with a gateway process, for FLOOD_FOR (3s) each. It
// prints the largest gap in the talkers' audio, the number of answered pings and their delay, the number of floods
// closed with 4029, and the gateway's memory. "nothing" is without a flood.
func BenchmarkFloods(b *testing.B) {
	lasting := 3 * time.Second
	if s := os.Getenv("FLOOD_FOR"); s != "" {
		var err error
		if lasting, err = time.ParseDuration(s); err != nil {
			b.Fatal(err)
		}
	}
	kinds := append([]flood{{name: "nothing"}}, floods()...)
	kinds = append(kinds, flood{name: "a model's events"}, flood{name: "hostile tools", tools: true})
	for _, provider := range providers {
		for _, f := range kinds {
			b.Run(provider+"/"+f.name, func(b *testing.B) {
				for b.Loop() {
					benchFlood(b, provider, f, lasting)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func benchFlood(b *testing.B, provider string, f flood, lasting time.Duration) {
	b.Helper()
	rate := 16000
	if provider == "openai" {
		rate = 24000
	}
	srv := echoProvider{pcm: make([]byte, rate/50*2)}.start(b)
	defer srv.Close()
	r := startRelay(b, provider, srv.URL, false)
	talkers := make([]*talker, talking)
	for i := range talkers {
		talkers[i] = &talker{conn: benchClient(b, r.url, rate)}
		defer talkers[i].conn.Abort()
	}
	rest, err := r.ask("settle")
	if err != nil {
		b.Fatal(err)
	}
	until := time.Now().Add(lasting)
	stop := make(chan struct{}) // closed when the time is up
	var talk, attack sync.WaitGroup
	for _, t := range talkers {
		talk.Go(func() { t.listen(until) })
		talk.Go(func() { t.talk(until, make([]byte, rate/50*2)) })
	}
	var ended, begun atomic.Int64
	if f.tools {
		ctx, cancel := context.WithDeadline(b.Context(), until)
		defer cancel()
		defer attackByTools(ctx, b)()
	}
	for range flooding {
		if f.name == "nothing" || f.tools {
			break
		}
		attack.Go(func() {
			for time.Now().Before(until) {
				begun.Add(1)
				code, err := f.attack(r.url, stop)
				switch {
				case err != nil && time.Now().Before(until):
					b.Error(err)
					return
				case code == protocol.CloseLimit, code == protocol.CloseProviderLost, f.deaf:
					ended.Add(1)
				}
			}
		})
	}
	var peak uint64
	for time.Now().Before(until) {
		now, err := r.ask("now")
		if err != nil {
			b.Fatal(err)
		}
		peak = max(peak, now.Heap)
		<-time.After(100 * time.Millisecond)
	}
	close(stop)
	attack.Wait()
	talk.Wait()
	report(b, f, talkers, ended.Load(), begun.Load(), max(peak, rest.Heap)-rest.Heap)
}

// attack runs a flood once, from the client or its model.
func (f flood) attack(url string, stop <-chan struct{}) (websocket.StatusCode, error) {
	if f.again != nil {
		return f.run(url, stop)
	}
	c, err := protocol.Dial(context.Background(), url+"/v1/voice", protocol.DialOptions{})
	if err != nil {
		return 0, err
	}
	over := make(chan struct{}) // closed on return
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer close(over)
	watcher.Go(func() {
		select {
		case <-stop:
		case <-over:
		}
		c.Abort()
	})
	start, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000, Voice: floodVoice})
	if err != nil {
		return 0, err
	}
	if err := c.WriteText(start); err != nil {
		return 0, err
	}
	for {
		if _, err := c.Read(); err != nil {
			return protocol.CloseStatus(err), nil
		}
	}
}

// talker is a talking session and its measurements.
type talker struct {
	conn *protocol.Conn

	gap   time.Duration // largest between two frames of audio; listen's
	pongs []time.Duration
	pings atomic.Int64
}

// pingEvery is the number of frames for each ping: one in 100 ms.
const pingEvery = 5

func (t *talker) talk(until time.Time, pcm []byte) {
	next := time.Now().Add(rand.N(20 * time.Millisecond))
	for i := 0; next.Before(until); i++ {
		<-time.After(time.Until(next))
		if t.conn.WriteAudio(pcm) != nil {
			return
		}
		if i%pingEvery == 0 {
			ping, err := protocol.EncodeClient(&protocol.Ping{T: float64(time.Now().UnixMicro())})
			if err != nil || t.conn.WriteText(ping) != nil {
				return
			}
			t.pings.Add(1)
		}
		next = next.Add(20 * time.Millisecond)
	}
}

// listen reads until the time is over and every ping is answered, or the connection ends.
func (t *talker) listen(until time.Time) {
	late := time.AfterFunc(time.Until(until)+5*time.Second, t.conn.Abort)
	defer late.Stop()
	var last time.Time
	for time.Now().Before(until) || int64(len(t.pongs)) < t.pings.Load() {
		f, err := t.conn.Read()
		now := time.Now()
		if err != nil {
			return
		}
		if f.Audio {
			if end := earlier(now, until); !last.IsZero() { // no speech follows
				t.gap = max(t.gap, end.Sub(last))
			}
			last = now
			continue
		}
		if m, err := protocol.ParseServer(f.Data); err == nil {
			if pong, ok := m.(*protocol.Pong); ok {
				t.pongs = append(t.pongs, now.Sub(time.UnixMicro(int64(pong.T))))
			}
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func report(b *testing.B, f flood, talkers []*talker, ended, begun int64, heap uint64) {
	b.Helper()
	var gap time.Duration
	var pongs []time.Duration
	var pings int64
	for _, t := range talkers {
		gap = max(gap, t.gap)
		pongs = append(pongs, t.pongs...)
		pings += t.pings.Load()
	}
	slices.Sort(pongs)
	var p99 time.Duration
	if n := len(pongs); n > 0 {
		p99 = pongs[n*99/100]
	}
	b.Logf("%-18s largest gap %s, pings answered %d of %d, p99 %s, floods ended %d of %d, heap +%.1f MiB", f.name,
		gap.Round(time.Millisecond), len(pongs), pings, p99.Round(100*time.Microsecond), ended, begun, float64(heap)/(1<<20))
	b.ReportMetric(float64(gap.Microseconds())/1000, "ms-gap")
	b.ReportMetric(100*float64(len(pongs))/float64(pings), "%pings")
	b.ReportMetric(float64(p99.Microseconds())/1000, "ms-ping-p99")
	b.ReportMetric(float64(ended), "ended")
	b.ReportMetric(float64(heap)/(1<<20), "MiB-heap")
}

// floodVoice is the voice with which echoProvider floods.
const floodVoice = "flood"
