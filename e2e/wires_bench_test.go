package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/gateway/phone"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// clientWire is a wire between a client and the gateway, at one rate in both directions.
type clientWire struct {
	name string
	rate int
	dial func(r *relay, n int) (voice.Conn, error)
	// base is the wire for the comparison: voicegw.v1 at the same rate.
	base string
}

// clientWires are measured in this order, each after its base.
var clientWires = []clientWire{
	{"voicegw", 24000, overVoicegw, ""},
	{"realtime", 24000, overRealtime, "voicegw"},
	{"voicegw-8k", 8000, overVoicegw, ""},
	{"realtime-g711", 8000, overRealtime, "voicegw-8k"},
	{"twilio", 8000, overTwilio, "voicegw-8k"},
}

func overVoicegw(r *relay, _ int) (voice.Conn, error) {
	return protocol.Dial(context.Background(), r.url+"/v1/voice", protocol.DialOptions{Client: trusting})
}

func overRealtime(r *relay, _ int) (voice.Conn, error) {
	return wire.DialRealtime(context.Background(), r.url+"/v1/realtime", wire.RealtimeOptions{APIKey: "bench", Client: trusting})
}

func overTwilio(r *relay, n int) (voice.Conn, error) {
	set := phoneSettings()
	c := wire.NewCarrier(wire.CarrierOptions{Account: set.Accounts[phone.Twilio].ID, Token: set.Accounts[phone.Twilio].Secret, Public: set.PublicURL,
		To: "+15550100", Gateway: r.url, Client: trusting})
	return c.Call(context.Background(), fmt.Sprintf("+1555%07d", n))
}

// asRelayConn makes a client's connection usable by a relay's caller.
type asRelayConn struct{ voice.Conn }

func (s asRelayConn) CloseNow() error { s.Abort(); return nil }

func (s asRelayConn) Write(typ websocket.MessageType, p []byte) error {
	if typ == websocket.MessageText {
		return s.WriteText(p)
	}
	return s.WriteAudio(p)
}

func (s asRelayConn) Read() (websocket.MessageType, []byte, error) {
	f, err := s.Conn.Read()
	if f.Audio {
		return websocket.MessageBinary, f.Data, err
	}
	return websocket.MessageText, f.Data, err
}

// callOver starts a session over a wire. The user repeats pcm, in frames of that size in bytes.
func (w clientWire) callOver(b *testing.B, r *relay, n int, pcm []byte, frame int) *relayCaller {
	b.Helper()
	conn, err := w.dial(r, n)
	if err != nil {
		b.Fatal(err)
	}
	text, err := protocol.EncodeClient(&protocol.Start{InputRate: w.rate, OutputRate: w.rate})
	if err != nil {
		b.Fatal(err)
	}
	if err := conn.WriteText(text); err != nil {
		b.Fatal(err)
	}
	f, err := conn.Read()
	if err != nil {
		b.Fatal(err)
	}
	if m, err := protocol.ParseServer(f.Data); err != nil {
		b.Fatal(err)
	} else if _, ok := m.(*protocol.SessionStarted); !ok {
		b.Fatalf("the gateway answered %s", f.Data)
	}
	return &relayCaller{conn: asRelayConn{conn}, audio: websocket.MessageBinary, frames: slices.Collect(slices.Chunk(pcm, frame)), piece: frame,
		parts: func(p []byte) int { return len(p) }}
}

// BenchmarkWires measures the cost of each client wire for the gateway: CPU and allocations for each frame, memory for
// each session, and the round trip of a frame to a provider that echoes, all compared with voicegw.v1 at the same rate.
// Phone audio is paced, so its round trip includes the pace.
func BenchmarkWires(b *testing.B) {
	const sessions = 200 // load.sessions of them speak
	load := relayLoad{sessions: 40, frame: 20 * time.Millisecond, kind: reports}
	way := relayWay{provider: "openai"}
	measured := map[string]relayFigures{}
	sizes := map[string]float64{} // bytes of heap for a speaking session
	for _, w := range clientWires {
		b.Run(w.name, func(b *testing.B) {
			talk := testutil.SpeechLike(w.rate, 2*time.Second, 1)
			srv := echoProvider{pcm: testutil.SpeechLike(way.rate(), load.frame, 1)}.start(b)
			defer srv.Close()
			r := startRelay(b, way.provider, srv.URL, false)
			ask := func() relayMemory {
				m, err := r.ask("settle")
				if err != nil {
					b.Fatal(err)
				}
				return m
			}
			frame := audio.Bytes(w.rate, load.frame)
			warm := w.callOver(b, r, sessions, talk, frame) // shared structures of the first session
			defer warm.conn.CloseNow()
			empty := ask()
			callers := make([]*relayCaller, sessions)
			for i := range callers {
				callers[i] = w.callOver(b, r, i, talk, frame)
				defer callers[i].conn.CloseNow()
				go callers[i].listen() // until it is closed
			}
			idle := ask()
			each := (float64(idle.Heap) - float64(empty.Heap)) / sessions
			for b.Loop() {
				measured[w.name] = measureRelay(b, r, callers[:load.sessions], load)
			}
			sizes[w.name] = each + (float64(ask().Heap)-float64(idle.Heap))/float64(load.sessions)
			b.ReportMetric(each/1024, "KB-heap/idle-session")
			b.ReportMetric(sizes[w.name]/1024, "KB-heap/session")
			b.ReportMetric(0, "ns/op")
			if base, ok := measured[w.base]; ok {
				b.ReportMetric(measured[w.name].cpu/base.cpu, "x-cpu")
				b.ReportMetric((sizes[w.name]-sizes[w.base])/1024, "KB-added")
				b.ReportMetric(float64((measured[w.name].p50 - base.p50).Microseconds()), "p50-added-us")
			}
		})
	}
}
