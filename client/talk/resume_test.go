package talk

import (
	"bytes"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/client/voice"
	gw "voicegw/gateway"
	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/sim/scenario"
	"voicegw/transport"
	"voicegw/transport/openai"
)

const longAnswer = `
rules:
  - when: {text: any}
    do: [{say: "Once there was a small gateway between a person and a model."}]
`

// behindProxy starts a gateway that allows resuming, with a model that gives one long answer, behind a proxy that can
// cut connections.
func behindProxy(t *testing.T) (direct string, proxy *testutil.Proxy) {
	t.Helper()
	answer, err := scenario.Parse("answer.yaml", []byte(longAnswer))
	if err != nil {
		t.Fatal(err)
	}
	model := sim.New(sim.Options{Seed: 1, FirstAudioMS: 100, Scenario: answer})
	modelServer := httptest.NewServer(model)
	wire, err := openai.New(transport.Provider{APIKey: "test", BaseURL: modelServer.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := session.NewManager(session.Options{
		Limits: session.Limits{ExemptLoopback: true}, Transports: map[string]transport.Transport{"openai": wire}, Provider: "openai",
		Policy: orchestrator.Policy{ResumeGrace: 30 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(gw.New(gw.Options{Sessions: m}))
	srv.Config.ConnContext = gw.ConnContext
	srv.Listener = gw.Listen(srv.Listener, gw.NewLoops(nil))
	srv.Start()
	proxy, err = testutil.Listen("127.0.0.1:0", strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
		m.Close()
		srv.Close()
		modelServer.Close()
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	return "ws" + strings.TrimPrefix(srv.URL, "http") + "/v1/voice", proxy
}

// TestLostConnection cuts the connection during an answer. The conversation reports it and resumes, and the audio heard
// is the same, byte for byte, as without the loss.
func TestLostConnection(t *testing.T) {
	direct, proxy := behindProxy(t)
	o := Options{URL: direct, Turns: []Turn{{Text: "Tell me a story"}}, KeepAudio: true}
	whole, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Do(testutil.Command{Do: testutil.Reset, AfterBytes: 60_001, Count: testutil.ToClient, Later: true}); err != nil {
		t.Fatal(err)
	}
	var events []Event
	o.URL = "ws://" + proxy.Addr() + "/v1/voice"
	o.Events = func(e Event) {
		if events = append(events, e); e.Event == EventResumed {
			if err := proxy.Do(testutil.Command{Do: testutil.Heal}); err != nil {
				t.Error(err)
			}
		}
	}
	broken, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(events, EventDisconnected, EventResumed, EventNotResumed); !slices.Equal(got, []string{EventDisconnected, EventResumed}) {
		t.Errorf("the conversation reported %v", got)
	}
	if !bytes.Equal(broken.Audio, whole.Audio) || len(whole.Audio) < 100_000 {
		t.Errorf("%d bytes were heard, %d without a loss; equal: %v", len(broken.Audio), len(whole.Audio), bytes.Equal(broken.Audio, whole.Audio))
	}
	var shown bytes.Buffer
	p := NewDisplay(&shown, false)
	for _, e := range events {
		p.Event(e)
	}
	for _, want := range []string{"the connection was lost (", "reconnected after ", "; the session continues"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q is missing in\n%s", want, shown.String())
		}
	}
}

// TestUnnoticedMoveIsNotReported: speech and queued audio last for 2 s. If the first attempt reaches a gateway that
// does not have the session yet, one line says that the call continues.
func TestUnnoticedMoveIsNotReported(t *testing.T) {
	for _, tc := range []struct {
		act    voice.Act
		away   time.Duration
		failed int // attempts
		want   []string
	}{
		{voice.Move, 300 * time.Millisecond, 0, nil},
		{voice.Move, 1500 * time.Millisecond, 3, []string{EventMoving}},
		{voice.Move, 3 * time.Second, 0, []string{EventResumed}},
		{voice.Move, 3 * time.Second, 3, []string{EventMoving, EventResumed}},
		{voice.Drop, 300 * time.Millisecond, 0, []string{EventDisconnected, EventResumed}},
		{voice.Drop, 300 * time.Millisecond, 2, []string{EventDisconnected, EventRetrying, EventRetrying, EventResumed}},
	} {
		var events []Event
		tk := &talker{o: Options{Events: func(e Event) { events = append(events, e) }}}
		tk.connectionEvent(time.Now(), voice.Event{Kind: voice.Disconnected, Act: tc.act, Err: io.EOF})
		for range tc.failed {
			tk.connectionEvent(time.Now(), voice.Event{Kind: voice.Retrying, Err: io.EOF})
		}
		tk.connectionEvent(time.Now(), voice.Event{Kind: voice.Resumed, Resumption: &voice.Resumption{Act: tc.act, Away: tc.away, Snapshot: true}})
		if got := names(events, EventDisconnected, EventRetrying, EventMoving, EventResumed); !slices.Equal(got, tc.want) {
			t.Errorf("a %s of %v reported %v, want %v", tc.act, tc.away, got, tc.want)
		}
	}
}
