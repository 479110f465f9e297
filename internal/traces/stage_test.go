package traces

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/transport"
)

var update = flag.Bool("update", false, "rewrite the trees of testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a collector in memory.
type recorder struct {
	mu    sync.Mutex
	spans []*tracepb.Span
}

func (r *recorder) UploadTraces(_ context.Context, all []*tracepb.ResourceSpans) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, testutil.SpansOf(all)...)
	return nil
}

func (r *recorder) Start(context.Context) error { return nil }

func (r *recorder) Stop(context.Context) error { return nil }

// open returns Traces that sample everything unless o says otherwise.
func open(t *testing.T, o Options) *Traces {
	t.Helper()
	tr, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	tr.Know(map[string]Model{"openai": {System: "openai", Host: "api.openai.com", Port: 443}}, Model{System: "openai", Name: "gpt-chat"})
	return tr
}

// shown closes the Traces and returns the spans of the recorder.
func shown(t *testing.T, tr *Traces, r *recorder, leave ...string) string {
	t.Helper()
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return testutil.Trees(r.spans, append(leave, keyOperation, keyToolType, keyMode, keyAgent, keySession, keyConversation, keyServer, keyPort, keyProvider, keyModel)...)
}

// golden compares trees with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// epoch is the start of the conversations in these tests.
var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// talk is a conversation by voice with the orchestrator's steps. Nothing runs: the test has the tools' results.
type talk struct {
	t        *testing.T
	state    orchestrator.State
	now      time.Time
	followed session.Followed
	steps    []session.Step
	run      []calls.Run // tools that were started
	asked    []calls.Ask
	resolve  []calls.Resolve
	nudges   int
}

// begin starts a conversation.
func begin(t *testing.T, tr *Traces, o session.Opening) *talk {
	t.Helper()
	o.SessionID, o.ConversationID, o.Agent, o.Provider, o.Model, o.Entry = "voice-1", "conv-1", "default", "openai", "gpt-realtime", session.EntryTicket
	o.Came, o.Started, o.Known, o.Begun = epoch.Add(-time.Second), epoch.Add(-300*time.Millisecond), epoch.Add(-200*time.Millisecond), epoch
	caps := transport.Capabilities{SpeechEvents: true, Truncate: true, Cancel: true, RespondNeeded: true, ToolsOff: true, History: transport.HistoryItems}
	k := &talk{t: t, now: epoch, followed: tr.Voice(o)}
	k.state = orchestrator.NewState(caps, orchestrator.NewRules(orchestrator.Policy{Relink: true, NudgeAfter: 10 * time.Second}), toolbox(t), prompts.NewMark(), epoch)
	k.does(0, orchestrator.Began{})
	return k
}

// does takes a step after some ms.
func (k *talk) does(after int, in orchestrator.Input) {
	k.t.Helper()
	k.now = k.now.Add(time.Duration(after) * time.Millisecond)
	next, actions := orchestrator.Step(k.state, k.now, in)
	k.state = next
	for _, a := range actions {
		if about, ok := a.(orchestrator.AboutCall); ok {
			switch do := about.Do.(type) {
			case calls.Run:
				k.run = append(k.run, do)
			case calls.Ask:
				k.asked = append(k.asked, do)
			case calls.Resolve:
				k.resolve = append(k.resolve, do)
			}
		}
	}
	step := session.Step{At: k.now, In: in, Actions: actions, Nudged: next.Nudges() != k.nudges}
	k.steps = append(k.steps, step)
	k.followed.Take(step)
	k.nudges = next.Nudges()
}

// says is speech of the user.
func (k *talk) says() {
	k.t.Helper()
	k.does(500, orchestrator.UserSpeechStarted{Item: "u", At: k.now})
	k.does(1000, orchestrator.UserSpeechStopped{Item: "u", EndAt: k.now.Add(800 * time.Millisecond), SpeechMS: 800})
	k.model(10, transport.InputCommitted{Item: "u"})
}

func (k *talk) model(after int, all ...transport.Event) {
	k.t.Helper()
	for _, e := range all {
		if u, ok := e.(transport.Usage); ok {
			k.does(after, orchestrator.Used{Tokens: u.Tokens})
		} else {
			k.does(after, orchestrator.FromModel{Event: e})
		}
		after = 0
	}
}

// answers is a complete spoken answer, which the user hears to its end.
func (k *talk) answers(id string) {
	k.t.Helper()
	k.model(100, transport.ResponseStarted{ID: id})
	k.speaks(id)
	k.does(200, orchestrator.AudioEnded{Item: "item-" + id, AudioMS: 300})
	k.model(0, transport.ResponseDone{ID: id, Status: transport.ResponseCompleted}, transport.Usage{Tokens: transport.Tokens{Input: 100, InputAudio: 80, InputText: 20, Output: 30, OutputAudio: 30}})
	k.does(400, orchestrator.Tick{})
}

// speaks is the beginning of a spoken answer.
func (k *talk) speaks(id string) {
	k.t.Helper()
	item := "item-" + id
	k.does(250, orchestrator.AudioBegan{Item: item})
	k.does(5, orchestrator.AudioSent{Item: item, Sent: 300 * time.Millisecond, Until: k.now.Add(305 * time.Millisecond)})
}

// ends is the end of the conversation.
func (k *talk) ends() {
	k.t.Helper()
	k.does(0, orchestrator.HungUp{})
	k.does(0, orchestrator.Over{})
	k.followed.Take(session.Step{At: k.now, Event: session.Ended{Reason: "client_ended"}})
}

// finishes ends the tool that was started last.
func (k *talk) finishes(after int, env registry.Envelope) {
	k.t.Helper()
	r := k.run[len(k.run)-1]
	env.Meta.DurationMS = int64(after)
	k.does(after, orchestrator.OfCall{In: calls.Finished{Call: r.Call, Envelope: env, BegunAt: k.now}})
}

// toolbox are the tools of these conversations.
var toolbox = func(t *testing.T) *registry.Snapshot {
	declare := func(id string, change func(*spec.Spec), params string) registry.Entry {
		s := spec.Spec{
			ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility, SideEffects: spec.SideEffectsNone, Idempotent: true,
			AllowedModes: []spec.Mode{spec.ModeVoice, spec.ModeText}, LatencyBudgetMS: 1000, TimeoutMS: 60_000,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + params + `},"additionalProperties":false}`),
		}
		change(&s)
		return registry.Entry{Spec: s, Summary: "A tool of a test.", Guide: "# " + id + "\n", Forms: registry.Forms{
			OpenAI: s.Parameters, OpenAIChat: s.Parameters, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{}}`)}}
	}
	entries := []registry.Entry{
		declare("kb_search", func(s *spec.Spec) {
			s.Category, s.SideEffects, s.Cancellable = spec.CategoryRetrieval, spec.SideEffectsReadOnly, true
		}, `"query":{"type":"string"},"top_k":{"type":"integer","minimum":1,"maximum":20,"default":5}`),
		declare("pay", func(s *spec.Spec) {
			s.Category, s.SideEffects, s.Idempotent = spec.CategoryAction, spec.SideEffectsWrites, false
			s.RequiresConfirmation, s.Preview = true, "Pay {amount} to {to}"
		}, `"amount":{"type":"integer"},"to":{"type":"string"}`),
	}
	handlers := map[string]registry.Handler{}
	for _, e := range entries {
		handlers[e.ToolID] = registry.Bind(func(context.Context, registry.Call[map[string]any, struct{}]) (registry.Result, error) {
			return registry.Result{}, nil
		})
	}
	r, err := registry.Load(registrytest.File(t, entries...), registry.Options{Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	return r.Snapshot()
}

// want fails unless trees have each of the texts.
func want(t *testing.T, trees string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(trees, text) {
			t.Errorf("there is no %q in\n%s", text, trees)
		}
	}
}

var errRefused = errors.New("refused")

// shownAgain is shown for closed Traces.
func shownAgain(r *recorder) string { return testutil.Trees(r.spans) }
