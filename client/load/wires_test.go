package load_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/client/load"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/internal/testutil"
)

// runRealtime calls a server of OpenAI's Realtime protocol in the bubble's time.
func runRealtime(t *testing.T, client *http.Client, o load.Options, text string) *report.Report {
	t.Helper()
	on, err := wire.Find(wire.NameRealtime)
	if err != nil {
		t.Fatal(err)
	}
	if o.Script, err = load.ParseScript("test.yaml", []byte(text), on); err != nil {
		t.Fatal(err)
	}
	o.Wire, o.URL, o.ScriptFile = on.Name, "ws://localhost/v1/realtime", "test.yaml"
	o.Dial = func(ctx context.Context, url string) (voice.Conn, error) {
		return wire.DialRealtime(ctx, url, wire.RealtimeOptions{APIKey: "test", Client: client, Model: "gpt-realtime"})
	}
	rep := run(t.Context(), t, o)
	rep.Judge(report.DefaultThresholds(on.Unmeasured))
	return rep
}

// realtimeServer is the simulator itself, or a gateway in front of the simulator of a provider.
func realtimeServer(t *testing.T, gatewayTo string, wait time.Duration) *http.Client {
	t.Helper()
	if gatewayTo != "" {
		return &http.Client{Transport: &http.Transport{DialContext: newTimedStack(t, gatewayTo, wait, "").front.Dial, DisableKeepAlives: true}}
	}
	model, back := newModel(t, wait, ""), testutil.ListenPipe()
	srv := &http.Server{Handler: model}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(back) }()
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), model.Close()); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return &http.Client{Transport: &http.Transport{DialContext: back.Dial, DisableKeepAlives: true}}
}

// TestRealtimeWire: over the OpenAI Realtime protocol the same script gives the same figures, except those that the
// protocol cannot provide.
func TestRealtimeWire(t *testing.T) {
	const wait = 300 * time.Millisecond
	const script = `turns:
- type: Hello
- say: Hello there.
  expect: {text: "yes", within: 2s}
- type: Tell me a story.
- say: Stop, please, I have heard enough.
  interrupt_after: 800ms
  expect: {flush_within: 300ms}
- type: Tell me a story.
- type: Hello
  interrupt_after: 500ms
  expect: {flush_within: 50ms}
- type: Tell me a story.
- stop: true
  interrupt_after: 500ms
  expect: {flush_within: 50ms}
`
	for name, tc := range map[string]struct {
		rate      int
		gatewayTo string
	}{
		"the simulator":        {0, ""},
		"the simulator, G.711": {8000, ""},
		"a gateway":            {0, "openai"},
		"a gateway, G.711":     {8000, "openai"},
		"a gateway to Gemini":  {0, "gemini"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := realtimeServer(t, tc.gatewayTo, wait)
				rep := runRealtime(t, client, load.Options{Plan: load.ScheduleOptions{Sessions: 2}, InputRate: tc.rate, OutputRate: tc.rate}, script)
				defer show(t, rep)
				if !rep.Passed || len(rep.Problems) > 0 || rep.Counters["answered"] != 10 || rep.Counters["interrupted"] != 6 {
					t.Errorf("passed %v, %d answered, %d interrupted", rep.Passed, rep.Counters["answered"], rep.Counters["interrupted"])
				}
				answer, detection, flush := rep.Figures["answer"], rep.Figures["detection"], rep.Figures["flush"]
				if answer.Count != 14 || answer.P50 < 300 || answer.Max > 310 || detection.Count != 4 || flush.Count != 6 {
					t.Errorf("answer %+v, detection %d, flush %d", answer, detection.Count, flush.Count)
				}
				for _, name := range rep.Target.Unmeasured {
					if _, there := rep.Figures[name]; there {
						t.Errorf("the report has %s", name)
					}
					if _, there := rep.Counters[name]; there {
						t.Errorf("the report has %s", name)
					}
				}
				var b strings.Builder
				if err := rep.Text(&b, false); err != nil || !strings.Contains(b.String(), "without    resuming, gateway_total,") || strings.Contains(b.String(), "lost bytes") {
					t.Errorf("%v\n%s", err, b.String())
				}
			})
		})
	}
}

// TestWiresAndTheirFigures: every unmeasured name is defined, and thresholds on it are omitted or refused.
func TestWiresAndTheirFigures(t *testing.T) {
	for _, w := range wire.Wires() {
		for _, name := range w.Unmeasured {
			_, err := report.ParseThreshold(name + ">0")
			_, errOfFigure := report.ParseThreshold(name + "_p50>0ms")
			if err != nil && errOfFigure != nil {
				t.Errorf("%s: %s is neither a counter nor a figure", w.Name, name)
			}
		}
		for _, d := range report.DefaultThresholds(w.Unmeasured) {
			if d.Of(w.Unmeasured) {
				t.Errorf("%s: the default %s", w.Name, d.Text)
			}
		}
	}
	twilio, err := wire.Find(wire.NameTwilio)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"detection_p95>1s": true, "tools>0": true, "first_audio_p95>1s": false, "answered_share<100": false} {
		d, err := report.ParseThreshold(text)
		if err != nil || d.Of(twilio.Unmeasured) != want {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// TestScriptsOfOtherWires: a key without a meaning on the wire is refused with its line.
func TestScriptsOfOtherWires(t *testing.T) {
	for text, want := range map[string]string{
		"begin: {chat: hi}\nturns: [{say: hi}]":            "line 1: the wire NAME has no begin",
		"turns:\n- drop: 1s":                               "line 2: the wire NAME has no drop",
		"turns:\n- say: hi\n  expect: {tool: kb_search}":   "line 3: the wire twilio has no tool",
		"turns:\n- say: hi\n  wait_for: {tool: x}":         "line 3: the wire twilio has no tool",
		"turns:\n- say: hi\n- type: 12a":                   `line 3: type: a phone has the keys`,
		"turns:\n- say: hi\n- type: '12#'":                 "",
		"microphone: false\nturns: [{type: '1'}]":          "line 1: the wire twilio has no microphone",
		"turns: [{say: hi, expect: {within: 2s}}]":         "",
		"turns: [{say: hi, pause: 1s, wait_for: nothing}]": "",
	} {
		for _, w := range wire.Wires() {
			_, err := load.ParseScript("s", []byte(text), w)
			on := strings.ReplaceAll(want, "NAME", w.Name)
			refused := want != "" && w.Name != wire.NameVoicegw && (strings.Contains(want, "NAME") || w.Name == wire.NameTwilio)
			if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), strings.TrimPrefix(on, "line ")) {
				t.Errorf("%s on %s: %v, want %q", text, w.Name, err, on)
			}
		}
	}
}

// TestOptionsOfOtherWires: rates, frames and outages that a wire does not support are refused.
func TestOptionsOfOtherWires(t *testing.T) {
	for name, tc := range map[string]struct {
		o    load.Options
		want string
	}{
		"rate":          {load.Options{Wire: wire.NameRealtime, InputRate: 16000}, "must be one of [8000 24000] Hz, not 16000"},
		"phone's rate":  {load.Options{Wire: wire.NameTwilio, OutputRate: 24000}, "must be one of [8000] Hz, not 24000"},
		"phone's frame": {load.Options{Wire: wire.NameTwilio, Frame: 100 * time.Millisecond}, "frames of 20ms"},
		"drops":         {load.Options{Wire: wire.NameRealtime, Drop: 5 * time.Second}, "cannot resume"},
		"unknown":       {load.Options{Wire: "sip"}, `no wire "sip"; one of [voicegw realtime twilio]`},
		"other address": {load.Options{Wire: wire.NameTwilio, URL: "ws://127.0.0.1:1/x"}, "does not end in"},
	} {
		tc.o.Script, tc.o.Plan.Sessions = parse(t, "turns: [{say: hi}]"), 1
		if _, err := load.Run(t.Context(), tc.o); !errors.Is(err, load.ErrOptions) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, w := range wire.Wires() {
		got, address, err := load.Options{Wire: w.Name}.Endpoint()
		if err != nil || got.Name != w.Name || address != "ws://127.0.0.1:8080"+w.Path {
			t.Errorf("%s: %s, %v", w.Name, address, err)
		}
		if base, err := load.BaseURL(address); err != nil || base != "http://127.0.0.1:8080" {
			t.Errorf("%s: %s, %v", w.Name, base, err)
		}
		if in, out, err := w.Rates(0, 0); err != nil || !slices.Contains(w.InputRates, in) || !slices.Contains(w.OutputRates, out) {
			t.Errorf("%s: %d and %d Hz, %v", w.Name, in, out, err)
		}
	}
}
