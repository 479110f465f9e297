package session

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"voicegw/audio"
	"voicegw/session/downlink"

	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/session/handoff"
	"voicegw/transport"
)

func contextWithTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// nullModel accepts everything and sends nothing.
type nullModel struct{ info transport.Info }

func (m nullModel) Send(context.Context, transport.Command) error { return nil }
func (m nullModel) Notify(func())                                 {}
func (m nullModel) Recv() (transport.Event, error)                { return nil, nil }
func (m nullModel) Ready() bool                                   { return false }
func (m nullModel) Close() error                                  { return nil }
func (m nullModel) Info() transport.Info                          { return m.info }
func (m nullModel) Stats() transport.Stats                        { return transport.Stats{} }

// TestSessionSize: a session fits the allocator's class of 4 KB; the next class is 4,864 bytes. Go puts a header of 8
// bytes before objects with pointers that are larger than 512 bytes. Data that few sessions need belongs behind a
// pointer.
func TestSessionSize(t *testing.T) {
	const class, header = 4096, 8
	if size := unsafe.Sizeof(session{}); size > class-header {
		t.Errorf("a session has %d bytes, want at most %d", size, class-header)
	}
}

// quietSession is a session without pumps: tests drive its audio path directly.
func quietSession(tb testing.TB, inRate, outRate int) *session {
	tb.Helper()
	return quietSessionOf(tb, inRate, outRate, downlink.NewBudget())
}

// quietSessionOf is quietSession with a budget shared by several sessions.
func quietSessionOf(tb testing.TB, inRate, outRate int, budget *downlink.Budget) *session {
	tb.Helper()
	model := nullModel{transport.Info{InputRate: 16000, OutputRate: 24000, Capabilities: transport.Capabilities{InterruptNotice: true}}}
	opts := Options{Policy: orchestrator.Policy{ResumeGrace: 30 * time.Second}}.withDefaults()
	opts.budget, opts.looked = budget, new(atomic.Int64)
	client := newTestClient()
	client.stallWrites() // so that everything passes the queue
	g := &startup{Ticket: handoff.Ticket{SessionID: "s"}, modelRequest: modelRequest{start: &protocol.Start{InputRate: inRate, OutputRate: outRate}}, logger: opts.Logger}
	s, err := newSession(g, &opts, client, model)
	if err != nil {
		tb.Fatal(err)
	}
	s.up.write = nil // the tests write
	s.down.Begin(downlink.Bounds{Rate: outRate, Audio: 120 * audio.Bytes(outRate, time.Second), All: 24 << 20, Frame: audio.Bytes(outRate, maxDownFrame), Away: audio.Bytes(outRate, awayBacklog)}, nil)
	return s
}

// walkUp sends one frame of the client through the gateway to the model.
func walkUp(s *session, batch []upEntry, in *transport.AudioIn, pcm []byte) []upEntry {
	s.mic.clock.start = time.Now().Add(-time.Hour) // never ahead
	s.client.attachment().audio(pcm, time.Time{})
	batch, _ = s.up.take(batch)
	for _, e := range batch {
		if _, err := s.model.link().sendEntry(e, in); err != nil {
			panic("the model does not fail")
		}
	}
	s.up.take(nil) // sends nothing
	return batch
}

// walkDown sends one piece of the model's speech through the gateway to the client.
func walkDown(s *session, ev *transport.AudioOut) {
	s.model.link().take(ev)
	for {
		e, ok := s.down.Pop(s.client.attachment().gen)
		if !ok {
			return
		}
		if e.Frame != nil {
			e.Frame.Free()
		}
	}
}

// TestAudioPathAllocatesNothing: neither direction allocates in the steady state, with or without resampling.
func TestAudioPathAllocatesNothing(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	for _, rates := range [][2]int{{16000, 24000}, {48000, 48000}, {44100, 8000}} {
		s := quietSession(t, rates[0], rates[1])
		var in transport.AudioIn
		up := make([]byte, rates[0]/50*2)
		batch := walkUp(s, nil, &in, up)
		if n := testing.AllocsPerRun(500, func() { batch = walkUp(s, batch, &in, up) }); n != 0 {
			t.Errorf("%v Hz: %v allocations a frame up", rates, n)
		}
		s.model.lookback.begin(16000, s.opts.looked)
		speech := testutil.Tone(rates[0], 300, -12, 20*time.Millisecond)
		for _, what := range []string{"noise", "speech"} {
			if what == "speech" {
				s.model.lookback.speechStarted(false)
			}
			for range 500 {
				batch = walkUp(s, batch, &in, speech) // until the buffer is full
			}
			if n := testing.AllocsPerRun(500, func() { batch = walkUp(s, batch, &in, speech) }); n != 0 {
				t.Errorf("%v Hz: %v allocations a frame of %s up", rates, n, what)
			}
		}
		ev := &transport.AudioOut{Item: "a1", PCM: make([]byte, 9600)}
		for range 10 {
			walkDown(s, ev)
		}
		if n := testing.AllocsPerRun(500, func() { walkDown(s, ev) }); n != 0 {
			t.Errorf("%v Hz: %v allocations a frame down", rates, n)
		}
	}
}

// BenchmarkUplinkFrame measures the gateway's work for 20 ms of a client's audio.
func BenchmarkUplinkFrame(b *testing.B) {
	for name, rate := range map[string]int{"same_rate": 16000, "resampled_48k": 48000} {
		b.Run(name, func(b *testing.B) {
			s := quietSession(b, rate, 24000)
			pcm := make([]byte, rate/50*2)
			var in transport.AudioIn
			var batch []upEntry
			b.ReportAllocs()
			b.SetBytes(int64(len(pcm)))
			for b.Loop() {
				batch = walkUp(s, batch, &in, pcm)
			}
		})
	}
}

// BenchmarkDownlinkFrame measures the gateway's work for 200 ms of the model's speech.
func BenchmarkDownlinkFrame(b *testing.B) {
	for name, rate := range map[string]int{"same_rate": 24000, "resampled_48k": 48000} {
		b.Run(name, func(b *testing.B) {
			s := quietSession(b, 16000, rate)
			ev := &transport.AudioOut{Item: "a1", PCM: make([]byte, 9600)}
			b.ReportAllocs()
			b.SetBytes(int64(len(ev.PCM)))
			for b.Loop() {
				walkDown(s, ev)
			}
		})
	}
}
