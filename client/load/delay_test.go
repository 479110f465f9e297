package load_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/client/load"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/gateway"
	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// timedStack is a gateway with an in-memory network and a fake clock, so that reports show only the code's own
// delays.
type timedStack struct{ front *testutil.PipeListener }

// newTimedStack's model is that of newModel.
func newTimedStack(t *testing.T, provider string, firstAudio time.Duration, faults string) *timedStack {
	t.Helper()
	model := newModel(t, firstAudio, faults)
	back := testutil.ListenPipe()
	modelServer := &http.Server{Handler: model}
	modelServed := make(chan error, 1)
	go func() { modelServed <- modelServer.Serve(back) }()
	network := &http.Transport{DialContext: back.Dial}
	m := newManager(t, provider, "http://model.test", &http.Client{Transport: network}, orchestrator.Policy{})
	st := &timedStack{front: testutil.ListenPipe()}
	srv := &http.Server{Handler: gateway.New(gateway.Options{Sessions: m}), ConnContext: gateway.ConnContext}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(gateway.Listen(st.front, nil)) }()
	t.Cleanup(func() {
		m.Close()
		for _, err := range []error{srv.Close(), modelServer.Close(), model.Close()} {
			if err != nil {
				t.Error("closing:", err)
			}
		}
		for _, done := range []chan error{served, modelServed} {
			if err := <-done; err != http.ErrServerClosed {
				t.Error("serving:", err)
			}
		}
		network.CloseIdleConnections()
	})
	return st
}

// run calls the gateway in the bubble's time.
func (st *timedStack) run(t *testing.T, o load.Options, text string) *report.Report {
	t.Helper()
	sc := parse(t, text)
	client := &http.Client{Transport: &http.Transport{DialContext: st.front.Dial, DisableKeepAlives: true}}
	o.URL, o.Script, o.ScriptFile = "ws://localhost/v1/voice", sc, "test.yaml"
	o.Dial = func(ctx context.Context, url string) (voice.Conn, error) {
		return protocol.Dial(ctx, url, protocol.DialOptions{Client: client})
	}
	rep := run(t.Context(), t, o)
	rep.Judge(report.DefaultThresholds(nil))
	return rep
}

// TestAKnownDelayIsReported: the simulator waits 300 ms before it speaks; answers to typed and spoken turns take that
// and at most 10 ms more, on both wires.
func TestAKnownDelayIsReported(t *testing.T) {
	const wait = 300 * time.Millisecond
	for name, c := range map[string]struct{ provider, script string }{
		"typed and said, openai": {"openai", "turns: [{type: Hello}, {say: Hello there.}]"},
		"push-to-talk, openai":   {"openai", "{push_to_talk: true, turns: [{say: Hello there.}, {say: Hello again.}]}"},
		"typed, gemini":          {"gemini", "turns: [{type: Hello}, {type: Hello again}]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := load.Options{Plan: load.ScheduleOptions{Sessions: 4, Ramp: 500 * time.Millisecond}, ProviderDelay: wait}
				rep := newTimedStack(t, c.provider, wait, "").run(t, o, c.script)
				defer show(t, rep)
				answer, added, first, detection := rep.Figures["answer"], rep.Figures["added"], rep.Figures["first_audio"], rep.Figures["detection"]
				if answer.Count != 8 || answer.P50 < 300 || answer.Max > 310 {
					t.Errorf("the answer took %v to %v ms (%d of them), want 300 to 310", answer.P50, answer.Max, answer.Count)
				}
				if added.Max > 10 {
					t.Errorf("the added delay is %v ms", added.Max)
				}
				if first.Max < answer.P50 || !rep.Passed || rep.Counters["answered"] != 8 || rep.Counters["problems"] != 0 || len(rep.Invalid) != 0 {
					t.Errorf("passed %v, %d answered, first audio %v, invalid %v", rep.Passed, rep.Counters["answered"], first.Max, rep.Invalid)
				}
				// Detecting the end of speech takes the provider 500 ms; with push-to-talk it takes none.
				switch {
				case strings.Contains(c.script, "push_to_talk"):
					if detection.Count != 8 || detection.Max > 60 {
						t.Errorf("push-to-talk was noticed after %v ms (%d)", detection.Max, detection.Count)
					}
				case strings.Contains(c.script, "say"):
					if detection.Count != 4 || detection.P50 < 480 || detection.P50 > 600 {
						t.Errorf("the end of speech was noticed after %v ms (%d)", detection.P50, detection.Count)
					}
				}
			})
		})
	}
}

// TestDelayedFramesMoveThePercentiles: one frame in a hundred is delayed by 2 s. The median stays; the high
// percentiles move.
func TestDelayedFramesMoveThePercentiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const script = "{microphone: false, pause: 0, turns: [{type: a}, {type: b}, {type: c}, {type: d}, {type: e}, {type: f}, {type: g}, {type: h}]}"
		const wait = 300 * time.Millisecond
		o := load.Options{Plan: load.ScheduleOptions{Sessions: 15, Ramp: 500 * time.Millisecond}}
		quiet := newTimedStack(t, "openai", wait, "").run(t, o, script)
		faulty := newTimedStack(t, "openai", wait, "faults: [{at: frame, probability: 0.01, do: delay, for: 2s}]").run(t, o, script)
		defer show(t, faulty)
		before, after := quiet.Figures["first_audio"], faulty.Figures["first_audio"]
		if before.Count != 120 || after.Count != 120 {
			t.Errorf("%d and %d answers", before.Count, after.Count)
		}
		if after.P50 > before.P50+10 || before.P99 > 310 || after.P99 < 2200 {
			t.Errorf("p50: %v ms before, %v after; p99: %v ms before, %v after", before.P50, after.P50, before.P99, after.P99)
		}
		var b strings.Builder
		if err := report.Compare("quiet", quiet, "faulty", faulty).Text(&b, false); err != nil || !strings.Contains(b.String(), "first audio, p99") {
			t.Errorf("%v\n%s", err, b.String())
		}
	})
}
