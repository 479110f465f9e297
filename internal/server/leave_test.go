package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"voicegw/chat"
	"voicegw/config"
	"voicegw/internal/process"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// TestStuckPartsAreLeft: the program waits for each part, but for a part that does not end only until its time is over or
// another signal arrives; then it names it.
func TestStuckPartsAreLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		hangs, signal bool
		took          time.Duration
		want          string // the error; empty for none
	}{
		"all ends":                              {took: time.Second},
		"the store hangs":                       {hangs: true, took: CloseTime, want: "the store did not end within 15s"},
		"the store hangs, and a signal arrives": {hangs: true, signal: true, took: 3 * time.Second, want: "the store did not end when another signal came"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := &Server{logger: slog.New(slog.NewTextHandler(&log, nil))}
				signals := make(chan os.Signal, 2)
				s.host.Signals = signals
				release := make(chan struct{})
				defer close(release)
				if tc.signal {
					time.AfterFunc(3*time.Second, func() { signals <- syscall.SIGTERM })
				}
				began := time.Now()
				err := s.close(CloseTime, process.Part{Name: "the server", End: func() error { <-time.After(time.Second); return nil }},
					process.Part{Name: "the store", End: func() error {
						if tc.hangs {
							<-release
						}
						return nil
					}})
				if took := time.Since(began); took != tc.took {
					t.Errorf("it took %s, want %s", took, tc.took)
				}
				if (err == nil) != (tc.want == "") || err != nil && (err.Error() != tc.want || !strings.Contains(log.String(), `part="the store"`)) {
					t.Errorf("it ended with %v; the log:\n%s", err, log.String())
				}
			})
		})
	}
}

// unreachable is a provider that never answers and ignores its context.
type unreachable struct{ release chan struct{} }

func (unreachable) Name() string { return "fake" }

func (unreachable) Model() string { return "" }

func (unreachable) Voices(string) []string { return nil }

func (unreachable) Models() []string { return nil }

func (unreachable) Refuses(string) bool { return false }

func (unreachable) Capabilities(string) (c transport.Capabilities) { return c }

func (u unreachable) Connect(context.Context, transport.Setup) (transport.Conn, error) {
	<-u.release
	return nil, errors.New("released")
}

// deadLine is a client that has sent session.start and accepts all messages.
type deadLine struct {
	session.Client // nil: no other method is called
	once           sync.Once
}

func (d *deadLine) Receive() (in protocol.Input, err error) {
	err = io.EOF
	d.once.Do(func() {
		in, err = protocol.Input{Message: &protocol.Start{InputRate: 16000, OutputRate: 24000}}, nil
	})
	return in, err
}

func (*deadLine) WriteAudio([]byte) error { return nil }

func (*deadLine) WriteText([]byte) error { return nil }

func (*deadLine) Ready() bool { return true }

func (*deadLine) Close(websocket.StatusCode, string) error { return nil }

func (*deadLine) Abort() {}

// noTexts is a text agent that is not called.
func noTexts(t *testing.T) *chat.Agent {
	t.Helper()
	executor := execute.New(execute.Options{})
	executor.Close()
	a, err := chat.New(chat.Options{Model: struct{ textmodel.Model }{}, Executor: executor, Conversations: struct{ chat.Conversations }{}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestASessionThatHangsIsLeft: a stuck provider delays the exit until its time is over, or until shortly after a second
// signal; the log names each session that is left.
func TestASessionThatHangsIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		second  bool
		hurried bool
		took    time.Duration
	}{
		"after its time":       {took: time.Minute + session.DrainRemainder},
		"with a second signal": {second: true, hurried: true, took: 10*time.Second + leaveTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer func() { close(release); synctest.Wait() }()
				m, err := session.NewManager(session.Options{Provider: "fake", Transports: map[string]transport.Transport{
					"fake": unreachable{release},
				}})
				if err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				signals := make(chan os.Signal, 2)
				s := &Server{toolset: toolset{host: Host{Signals: signals}, cfg: &config.Config{DrainTimeout: time.Minute}}, logger: slog.New(slog.NewTextHandler(&log, nil)), sessions: m, texts: noTexts(t)}
				a, err := m.Admit(netip.MustParseAddr("203.0.113.7"), session.Coming{})
				if err != nil {
					t.Fatal(err)
				}
				m.Start(a, &deadLine{})
				synctest.Wait()
				if tc.second {
					time.AfterFunc(10*time.Second, func() { signals <- syscall.SIGTERM })
				}
				began := time.Now()
				hurried, err := s.drain()
				if took := time.Since(began); took != tc.took || hurried != tc.hurried {
					t.Errorf("it took %s, hurried %t; want %s, %t", took, hurried, tc.took, tc.hurried)
				}
				var left *session.LeftError
				if !errors.As(err, &left) || len(left.Sessions) != 1 || !strings.Contains(log.String(), "phase=opening") || !strings.Contains(log.String(), left.Sessions[0].ID) {
					t.Errorf("it ended with %v; the log:\n%s", err, log.String())
				}
			})
		})
	}
}

// TestStuckToolsAreNamed: the error names the tools that are still running.
func TestStuckToolsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer func() { close(release); synctest.Wait() }()
		tools := stuckTool(t, release)
		began := time.Now()
		err := waitForTools(tools)
		if took := time.Since(began); took != toolTime || err == nil || err.Error() != "tools are still running: stuck (1)" {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// stuckTool is a registry with a running tool call, which ends when release is closed.
func stuckTool(t *testing.T, release <-chan struct{}) *registry.Registry {
	t.Helper()
	object := json.RawMessage(`{"type":"object","additionalProperties":false}`)
	tools, err := registry.Load(registrytest.File(t, registry.Entry{
		Spec: spec.Spec{
			ToolID: "stuck", Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility,
			SideEffects: spec.SideEffectsNone, Idempotent: true, AllowedModes: []spec.Mode{spec.ModeVoice},
			LatencyBudgetMS: 1000, TimeoutMS: 1000, Parameters: object,
		},
		Summary: "A tool of a test.", Guide: "# stuck\n",
		Forms: registry.Forms{OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT"}`)},
	}), registry.Options{Handlers: map[string]registry.Handler{
		"stuck": registry.Bind(func(context.Context, registry.Call[struct{}, struct{}]) (registry.Result, error) {
			<-release
			return registry.Result{}, nil
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	call, refused := tools.Snapshot().Prepare("stuck", spec.ModeVoice, json.RawMessage(`{}`))
	if refused != nil {
		t.Fatal(refused.Error)
	}
	if env := call.Run(t.Context(), registry.Session{}); env.OK {
		t.Fatal("the tool has ended")
	}
	return tools
}

// TestADrainRefusesAtOnce: the answer to the operator who begins a drain says that the gateway refuses sessions.
func TestADrainRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := session.NewManager(session.Options{Provider: "fake", Transports: map[string]transport.Transport{"fake": unreachable{}}})
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{logger: slog.New(slog.DiscardHandler), sessions: m, texts: noTexts(t), node: new(store.Membership)}
		s.cfg = &config.Config{DrainTimeout: time.Minute}
		d := &operatorDrain{s: s}
		d.Begin(0)
		if !d.Progress().Draining || !s.sessions.Draining() {
			t.Errorf("the gateway does not refuse sessions: %+v", d.Progress())
		}
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
}
