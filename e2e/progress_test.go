package e2e

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/gateway"
	"voicegw/internal/auth"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/sim/scenario"
	"voicegw/transport"
)

// progressScenario is a model that knows a tool's progress.
const progressScenario = `
name: progress
rules:
  - when: {text: a report}
    do:
      - say: I begin.
      - call: report
      - then: [{say: The report is there.}]
  - when: {text: how far, remembers: '^user: .*report, which you have called, still runs.*Chapter 2 of 4'}
    do: [{say: It is at the second chapter.}]
  - when: {text: how far}
    do: [{say: I do not know how far it is.}]
`

// TestProgressReachesTheModel: the user asks for a running tool's progress. A model that accepts entries without a turn
// knows it, says nothing unasked, and gets the result; others do not know it.
func TestProgressReachesTheModel(t *testing.T) {
	for _, c := range []struct{ wire, model, answer string }{
		{"openai", "", "second chapter"},
		{"gemini", "gemini-3.8-live", "second chapter"},
		{"gemini", "gemini-3.8-live-extended-thinking", "second chapter"},
		{"gemini", "gemini-2.5-flash-native-audio-preview-09-2025", "do not know"},
	} {
		t.Run(c.wire+" "+c.model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgressing(t, c.wire, c.model)
				p.say("a report")
				<-time.After(8 * time.Second) // in the bubble; the tool reports after 1 and 4 s
				synctest.Wait()
				if got := p.words(); got != "I begin." {
					t.Errorf("the model said unasked %q", got)
				}
				p.say("how far is it?")
				<-time.After(3 * time.Second)
				synctest.Wait()
				if got := p.words(); !strings.Contains(got, c.answer) {
					t.Errorf("the model said %q", got)
				}
				<-time.After(30 * time.Second)
				synctest.Wait()
				if got := p.words(); c.wire == "gemini" && !strings.Contains(got, "report is there") {
					t.Errorf("at the end the model had said %q", got) // OpenAI's model learned that no result follows
				}
			})
		})
	}
}

// progressing is a client of a session with one tool, report, that takes 20 s, in a bubble.
type progressing struct {
	t    *testing.T
	conn *protocol.Conn

	mu   sync.Mutex // guards the following field
	said []string   // by the model
}

func newProgressing(t *testing.T, wire, model string) *progressing {
	script, err := scenario.Parse("progress.yaml", []byte(progressScenario))
	if err != nil {
		t.Fatal(err)
	}
	provider := sim.New(sim.Options{Seed: 1, Speed: 50, FirstAudioMS: 10, Scenario: script})
	t.Cleanup(func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	})
	tr := newModelOver(t, wire, model, secret, "http://sim", inMemory(t, provider))
	m, err := session.NewManager(session.Options{
		Transports: map[string]transport.Transport{wire: tr}, Provider: wire, Tools: reporting(t).Snapshot,
		Limits: session.Limits{ExemptLoopback: true}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	callers := inMemory(t, gateway.New(gateway.Options{Sessions: m, Auth: auth.Operators(operatorsKey)}))
	conn, err := protocol.Dial(t.Context(), "ws://localhost/v1/voice", protocol.DialOptions{Client: callers})
	if err != nil {
		t.Fatal(err)
	}
	p := &progressing{t: t, conn: conn}
	var reading sync.WaitGroup
	reading.Go(p.listen)
	t.Cleanup(func() {
		conn.Abort()
		reading.Wait()
	})
	p.send(&protocol.Start{InputRate: 16000, OutputRate: 24000})
	return p
}

// inMemory serves h and returns a client for it.
func inMemory(t *testing.T, h http.Handler) *http.Client {
	l := testutil.ListenPipe()
	srv := &http.Server{Handler: h, ConnContext: gateway.ConnContext}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() {
		_ = srv.Close()
		served.Wait()
	})
	return &http.Client{Transport: &http.Transport{DialContext: l.Dial, DisableKeepAlives: true}}
}

// reporting contains the tool report, non-blocking if the model supports it.
func reporting(t *testing.T) *registry.Registry {
	type needs struct{ Progress registry.Progress }
	tools, err := registry.Load(registrytest.File(t, testTool(t, "report", ``, ``, func(s *spec.Spec) {
		s.Behavior, s.Scheduling = spec.BehaviorNonBlocking, spec.SchedulingWhenIdle
	})), registry.Options{Handlers: map[string]registry.Handler{
		"report": registry.Bind(func(ctx context.Context, c registry.Call[anyArgs, needs]) (registry.Result, error) {
			<-time.After(time.Second)
			c.Needs.Progress.Tell("Chapter 1 of 4", 0)
			<-time.After(3 * time.Second)
			c.Needs.Progress.Tell("Chapter 2 of 4", 0.25)
			<-time.After(16 * time.Second)
			return registry.Result{Data: map[string]any{"pages": 12}}, ctx.Err()
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	tools.Lock()
	return tools
}

// listen takes the gateway's output and plays it at once.
func (p *progressing) listen() {
	for {
		f, err := p.conn.Read()
		if err != nil {
			return
		}
		if f.Audio {
			continue
		}
		m, err := protocol.ParseServer(f.Data)
		if err != nil {
			p.t.Error(err)
			return
		}
		switch m := m.(type) {
		case *protocol.AudioEnd:
			p.send(&protocol.Playback{ItemID: m.ItemID, PlayedMS: m.AudioMS, Done: true})
		case *protocol.Transcript:
			if m.Role == "assistant" && m.Final {
				p.mu.Lock()
				p.said = append(p.said, m.Text)
				p.mu.Unlock()
			}
		}
	}
}

func (p *progressing) send(m protocol.ClientMessage) {
	text, err := protocol.EncodeClient(m)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = p.conn.WriteText(text) // after the session's end, the reader reports it
}

func (p *progressing) say(text string) { p.send(&protocol.InputText{Text: text}) }

// words returns all of the model's words.
func (p *progressing) words() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.said, " ")
}
