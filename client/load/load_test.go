package load_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"voicegw/client/load"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/gateway"
	"voicegw/orchestrator"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/sim/scenario"
	"voicegw/transport"
	"voicegw/transport/gemini"
	"voicegw/transport/openai"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Google's client starts it with the program; it never ends.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// stack is a gateway with a simulated provider, over real sockets.
type stack struct {
	url     string // of the voice endpoint
	manager *session.Manager
}

// brief is a model with short answers, and a long one for interruptions.
const brief = `
rules:
  - when: {text: story}
    do:
      - say: Once there was a small gateway that stood between a person and a model. It listened to both and understood neither, and that was its strength.
  - when: {text: any}
    do: [{say: "Yes."}]
  - when: {utterance: any}
    do: [{say: "Yes."}]
`

// newModel returns a model that waits for firstAudio before it speaks. faults is a fault script or empty.
func newModel(t *testing.T, firstAudio time.Duration, faults string) *sim.Server {
	t.Helper()
	o := sim.Options{Seed: 1, FirstAudioMS: int(firstAudio.Milliseconds())}
	var err error
	if o.Scenario, err = scenario.Parse("brief.yaml", []byte(brief)); err != nil {
		t.Fatal(err)
	}
	if faults != "" {
		if o.Faults, err = scenario.ParseFaults("faults.yaml", []byte(faults)); err != nil {
			t.Fatal(err)
		}
	}
	return sim.New(o)
}

// newManager runs sessions with the model at a URL. A nil client is the default.
func newManager(t *testing.T, provider, url string, client *http.Client, policy orchestrator.Policy) *session.Manager {
	t.Helper()
	var tr transport.Transport
	var err error
	if provider == "openai" {
		tr, err = openai.New(transport.Provider{APIKey: "test", BaseURL: url + "/v1", HTTPClient: client})
	} else {
		tr, err = gemini.New(transport.Provider{APIKey: "test", BaseURL: url, HTTPClient: client})
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := session.NewManager(session.Options{Limits: session.Limits{ExemptLoopback: true}, Transports: map[string]transport.Transport{provider: tr}, Provider: provider, Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newStack's faults is a fault script or empty.
func newStack(t *testing.T, provider, faults string, policy orchestrator.Policy) *stack {
	t.Helper()
	model := newModel(t, 300*time.Millisecond, faults)
	modelServer := httptest.NewServer(model)
	m := newManager(t, provider, modelServer.URL, nil, policy)
	srv := httptest.NewUnstartedServer(gateway.New(gateway.Options{Sessions: m}))
	srv.Config.ConnContext = gateway.ConnContext
	srv.Listener = gateway.Listen(srv.Listener, gateway.NewLoops(nil))
	srv.Start()
	t.Cleanup(func() {
		m.Close()
		srv.Close()
		modelServer.Close()
		if err := model.Close(); err != nil {
			t.Error("closing the simulator:", err)
		}
	})
	return &stack{url: "ws" + strings.TrimPrefix(srv.URL, "http") + "/v1/voice", manager: m}
}

func parse(t *testing.T, text string) *load.Script {
	t.Helper()
	sc, err := load.ParseScript("test.yaml", []byte(text), wire.Wire{})
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func run(ctx context.Context, t *testing.T, o load.Options) *report.Report {
	t.Helper()
	rep, err := load.Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// run calls a gateway. A busy machine fails no run: delay_test.go covers times, with a fake clock.
func (st *stack) run(t *testing.T, o load.Options, text string) *report.Report {
	t.Helper()
	sc := parse(t, text)
	o.URL, o.Script, o.ScriptFile = st.url, sc, "test.yaml"
	rep := run(t.Context(), t, o)
	rep.Invalid = nil
	rep.Judge(report.DefaultThresholds(nil))
	return rep
}

// show logs the report of a failed test.
func show(t *testing.T, rep *report.Report) {
	t.Helper()
	if t.Failed() {
		var b strings.Builder
		if err := rep.Text(&b, false); err != nil {
			t.Error(err)
		}
		t.Log(b.String())
	}
}

// TestStuckSessionIsFound: the provider's third connection falls silent, and the report names the third session.
func TestStuckSessionIsFound(t *testing.T) {
	t.Parallel()
	st := newStack(t, "openai", "faults: [{at: turn, n: 2, connection: 3, do: silence}]", orchestrator.Policy{NudgeAfter: time.Minute, NoAnswerAfter: time.Minute})
	rep := st.run(t, load.Options{Plan: load.ScheduleOptions{Sessions: 5, Ramp: 2 * time.Second}}, "{microphone: false, patience: 4s, turns: [{type: Hello}, {type: Hello again}, {type: Bye}]}")
	defer show(t, rep)
	if len(rep.Problems) != 1 {
		t.Fatalf("%d problems: %+v", len(rep.Problems), rep.Problems)
	}
	p := rep.Problems[0]
	if p.Session != 3 || p.Turn != 2 || p.Kind != report.KindStuck || !strings.HasPrefix(p.ID, "voice-") {
		t.Errorf("got %+v", p)
	}
	if rep.Passed || rep.Counters["stuck"] != 1 || rep.Counters["answered"] != 13 || rep.Counters["left"] != 0 {
		t.Errorf("passed %v, %v", rep.Passed, rep.Counters)
	}
}

// TestInterruptionsEndToEnd covers interruptions by voice, text and button on both wires. Nothing follows a flush.
func TestInterruptionsEndToEnd(t *testing.T) {
	t.Parallel()
	const script = `turns:
  - {type: a story, expect: {within: 10s}}
  - {say: Stop please., interrupt_after: 500ms, expect: {flush_within: 5s}}
  - {type: a story}
  - {type: Stop, interrupt_after: 500ms, expect: {flush_within: 5s}}
  - {type: a story}
  - {stop: true, interrupt_after: 500ms, expect: {flush_within: 5s}}`
	for _, provider := range []string{"openai", "gemini"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			rep := newStack(t, provider, "", orchestrator.Policy{}).run(t, load.Options{Plan: load.ScheduleOptions{Sessions: 2, Ramp: 300 * time.Millisecond}}, script)
			defer show(t, rep)
			if !rep.Passed || rep.Counters["interrupted"] != 6 || rep.Counters["stale_frames"] != 0 || rep.Figures["flush"].Count != 6 {
				t.Errorf("passed %v, %d interrupted, %d flushes, %d stale frames", rep.Passed, rep.Counters["interrupted"], rep.Figures["flush"].Count, rep.Counters["stale_frames"])
			}
		})
	}
}

// TestRunEnds covers its end by schedule and by a signal, and their reports.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	st := newStack(t, "openai", "", orchestrator.Policy{})
	sc := parse(t, "{microphone: false, turns: [{type: Hello}]}")
	seen := 0
	o := load.Options{
		URL: st.url, Script: sc, Plan: load.ScheduleOptions{Mode: load.Soak, Sessions: 2, Duration: 4 * time.Second, Call: time.Second, Rest: 500 * time.Millisecond},
		Warmup: 500 * time.Millisecond, Progress: func(load.Status) { seen++ },
	}
	rep := run(t.Context(), t, o)
	if rep.Stopped != "" || rep.TookMS < 3000 || rep.TookMS > 30_000 || rep.Counters["calls"] < 3 || seen < 3 || len(rep.Series) < 3 || rep.Counters["left"] != 0 {
		t.Errorf("stopped %q after %d ms, %d calls, %d times reported, %d points", rep.Stopped, rep.TookMS, rep.Counters["calls"], seen, len(rep.Series))
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errors.New("a signal"))
	defer cancel()
	o.Plan, o.Warmup = load.ScheduleOptions{Sessions: 2, Duration: time.Hour}, 0
	rep = run(ctx, t, o)
	if rep.Stopped != "a signal" || rep.TookMS > 15_000 || rep.Counters["sessions"] == 0 || rep.Counters["lost"] != 0 {
		t.Errorf("stopped %q after %d ms: %v", rep.Stopped, rep.TookMS, rep.Counters)
	}
}

// TestRefusedCallersRetry covers retries until the run ends; TestRefusedCallerWaits covers their times.
func TestRefusedCallersRetry(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tries atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "full", http.StatusServiceUnavailable)
		if tries.Add(1) == 3 {
			cancel()
		}
	}))
	defer srv.Close()
	sc := parse(t, "turns: [{type: Hello}]")
	rep := run(ctx, t, load.Options{URL: "ws" + strings.TrimPrefix(srv.URL, "http") + "/v1/voice", Script: sc, Plan: load.ScheduleOptions{Sessions: 1, Duration: time.Hour}})
	// The third counts only if it was reported before the run ended.
	if n := rep.Counters["refused"]; n < 2 || n > 3 || rep.Errors["refused"] != n || !strings.Contains(rep.Problems[0].What, "503 Service Unavailable: full") {
		t.Errorf("%d refused, %v, %v", n, rep.Errors, rep.Problems)
	}
}

func TestInvalidRuns(t *testing.T) {
	sc := parse(t, "turns: [{say: {recording: gone.wav}}]")
	good := load.Options{URL: "ws://127.0.0.1:1/v1/voice", Script: sc, Plan: load.ScheduleOptions{Sessions: 1}}
	for name, c := range map[string]struct {
		change func(*load.Options)
		is     error
		word   string
	}{
		"elsewhere":       {func(o *load.Options) { o.URL = "wss://example.com/v1/voice" }, load.ErrOptions, "--yes-really"},
		"elsewhere by ip": {func(o *load.Options) { o.URL = "ws://192.0.2.1:8080/v1/voice" }, load.ErrOptions, "192.0.2.1:8080 is not this machine"},
		"a look-alike":    {func(o *load.Options) { o.URL = "ws://localhost.example.com/v1/voice" }, load.ErrOptions, "--yes-really"},
		"no address":      {func(o *load.Options) { o.URL = "ftp://localhost" }, load.ErrOptions, "not a voice endpoint"},
		"a password":      {func(o *load.Options) { o.URL = "ws://me:secret@localhost/v1/voice" }, load.ErrOptions, "password"},
		"a crooked rate":  {func(o *load.Options) { o.InputRate = 11025 }, load.ErrOptions, "input rate"},
		"another rate":    {func(o *load.Options) { o.OutputRate = 44100 }, load.ErrOptions, "output rate"},
		"a long frame":    {func(o *load.Options) { o.Frame = time.Second }, load.ErrOptions, "frame"},
		"half samples":    {func(o *load.Options) { o.InputRate, o.Frame = 44100, 11*time.Millisecond }, load.ErrOptions, "whole samples"},
		"no script":       {func(o *load.Options) { o.Script = nil }, load.ErrOptions, "no script"},
		"no session":      {func(o *load.Options) { o.Plan.Sessions = 0 }, load.ErrSchedule, "1 to"},
		"no recording":    {func(*load.Options) {}, voice.ErrRecordings, "gone.wav"},
		"no process":      {func(o *load.Options) { o.Script.Turns[0].Recording, o.PID = "any", 1<<30 }, load.ErrOptions, "process"},
		"debug alone":     {func(o *load.Options) { o.Script.Turns[0].Recording, o.Debug = "any", "http://127.0.0.1:1" }, load.ErrOptions, "--pid"},
	} {
		t.Run(name, func(t *testing.T) {
			o, own := good, *sc
			own.Turns = append([]load.Turn(nil), sc.Turns...)
			o.Script = &own
			c.change(&o)
			_, err := load.Run(t.Context(), o)
			if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.word) || strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("got %v, want %v with %q", err, c.is, c.word)
			}
		})
	}
}

// TestBuiltInScripts parses each built-in script.
func TestBuiltInScripts(t *testing.T) {
	if len(load.ExampleNames()) < 5 {
		t.Errorf("the scripts are %v", load.ExampleNames())
	}
	for _, name := range load.ExampleNames() {
		data, err := load.ReadExample(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := load.ParseScript(name, data, wire.Wire{})
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name != name {
			t.Errorf("%s has the name %s", name, s.Name)
		}
	}
	if _, err := load.ReadExample("none"); err == nil || !strings.Contains(err.Error(), "talk") {
		t.Errorf("got %v", err)
	}
}

// TestLostConnections: connections cut during both sides' speech, replaced by a reload, and replaced while open, on
// both wires. Each session resumes, and no byte of an answer is lost or repeated.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	const script = `turns:
  - {type: a story}
  - {drop: 0s, after: 500ms}
  - {drop: 500ms, after: 2s}
  - {say: Tell me more.}
  - {drop: 0s, into_speech: 200ms}
  - {type: a story}
  - {roam: true, after: 300ms}
  - {type: a story}
  - {reload: 200ms, after: 300ms}
  - {wait: 300ms}`
	for _, provider := range []string{"openai", "gemini"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, provider, "", orchestrator.Policy{ResumeGrace: 30 * time.Second})
			rep := st.run(t, load.Options{Plan: load.ScheduleOptions{Sessions: 2, Ramp: 300 * time.Millisecond}}, script)
			defer show(t, rep)
			want := map[string]int64{
				"drops": 6, "roams": 2, "reloads": 2, "displaced": 2, "resumes": 10, "resumes_failed": 0, "losses": 0, "snapshots": 0,
				"lost_bytes": 0, "repeated_bytes": 0, "lost_messages": 0, "loss_flushes": 2, "stale_frames": 0, "answered": 8, "sessions": 2,
			}
			for name, n := range want {
				if rep.Counters[name] != n {
					t.Errorf("%s: %d, want %d", name, rep.Counters[name], n)
				}
			}
			// The microphone's audio is held for two seconds; a busy machine may take longer to reconnect.
			if n, outage := rep.Counters["unsaid_frames"], rep.Figures["outage"].Max; n != 0 && outage < 2000 {
				t.Errorf("unsaid_frames: %d, but no outage was longer than %g ms", n, outage)
			}
			if !rep.Passed || rep.Figures["resume"].Count != 10 || rep.Figures["outage_audio"].Count == 0 || rep.Figures["outage_heard"].Count == 0 {
				t.Errorf("passed %v, %d times of a resume, %d of audio", rep.Passed, rep.Figures["resume"].Count, rep.Figures["outage_audio"].Count)
			}
		})
	}
}

// TestOutages covers the outage flags. If the gateway refuses to resume, the run fails with a problem.
func TestOutages(t *testing.T) {
	t.Parallel()
	o := load.Options{Plan: load.ScheduleOptions{Sessions: 3, Ramp: 100 * time.Millisecond, Duration: 5 * time.Second}, Drop: 2 * time.Second}
	const script = "{microphone: false, turns: [{type: a story}]}"
	rep := newStack(t, "openai", "", orchestrator.Policy{ResumeGrace: 30 * time.Second}).run(t, o, script)
	defer show(t, rep)
	if n := rep.Counters["drops"]; n < 6 || rep.Counters["resumes"] != n || rep.Counters["lost_bytes"]+rep.Counters["repeated_bytes"] != 0 || !rep.Passed {
		t.Errorf("%d drops, %d resumes, passed %v", n, rep.Counters["resumes"], rep.Passed)
	}
	rep = newStack(t, "openai", "", orchestrator.Policy{}).run(t, o, script)
	if rep.Passed || rep.Counters["drops"] != 0 || rep.Counters["not_cut"] == 0 || !strings.Contains(rep.Problems[0].What, "limits.resume_grace") {
		t.Errorf("passed %v, %d drops, %v", rep.Passed, rep.Counters["drops"], rep.Problems)
	}
}
