package execute

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// args are the arguments of all tools here.
type args struct {
	Name string `json:"name"`
	Time string `json:"time"`
}

type call = registry.Call[args, struct{}]

// handler is a tool of a test.
type handler func(ctx context.Context, c call) (registry.Result, error)

// entries are the tools. look and stop read and may be repeated, rare reads and may not; stop is cancellable. book
// and move write and have a business key, again may be repeated, wipe is cancellable, and pay is too but needs an
// approval.
func entries() []registry.Entry {
	one := func(id string, change func(*spec.Spec)) registry.Entry {
		s := spec.Spec{
			ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility,
			SideEffects: spec.SideEffectsReadOnly, AllowedModes: []spec.Mode{spec.ModeText, spec.ModeVoice},
			LatencyBudgetMS: 1000, TimeoutMS: 60_000, Preview: "Do it for {name}",
			Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"time":{"type":"string"}},"additionalProperties":false}`),
		}
		change(&s)
		return registry.Entry{Spec: s, Summary: "A tool of a test.", Guide: "# " + id + "\n", Forms: registry.Forms{
			OpenAI: s.Parameters, OpenAIChat: s.Parameters, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"name":{"type":"STRING"},"time":{"type":"STRING"}}}`)}}
	}
	writes := func(s *spec.Spec) {
		s.Category, s.SideEffects = spec.CategoryAction, spec.SideEffectsWrites
	}
	return []registry.Entry{
		one("look", func(s *spec.Spec) { s.Idempotent = true }),
		one("stop", func(s *spec.Spec) { s.Idempotent, s.Cancellable = true, true }),
		one("rare", func(*spec.Spec) {}),
		one("book", func(s *spec.Spec) { writes(s); s.IdempotencyKey = "{name} {time}" }),
		one("move", func(s *spec.Spec) { writes(s); s.IdempotencyKey = "{name} {time}" }),
		one("wipe", func(s *spec.Spec) { writes(s); s.Cancellable = true }),
		one("again", func(s *spec.Spec) { writes(s); s.Idempotent = true }),
		one("pay", func(s *spec.Spec) { writes(s); s.Cancellable, s.RequiresConfirmation = true, true }),
	}
}

// load makes a snapshot of tools that all call f.
func load(t testing.TB, f handler, tools ...registry.Entry) *registry.Snapshot {
	t.Helper()
	return loadChecked(t, f, func(context.Context, call) error { return nil }, tools...)
}

// loadChecked is load for tools with their own check.
func loadChecked(t testing.TB, f handler, check func(context.Context, call) error, tools ...registry.Entry) *registry.Snapshot {
	t.Helper()
	handlers := map[string]registry.Handler{}
	for _, e := range tools {
		handlers[e.ToolID] = registry.Bind(func(ctx context.Context, c call) (registry.Result, error) { return f(ctx, c) }, check)
	}
	r, err := registry.Load(registrytest.File(t, tools...), registry.Options{Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	return r.Snapshot()
}

// fixture is an Executor with a ledger and questions in memory.
type fixture struct {
	t         testing.TB
	e         *Executor
	ledger    *storetest.Ledger
	questions *storetest.Confirmations
	tools     *registry.Snapshot
	log       *lines

	// do is the handler of all tools; nil answers at once. check is their own check; nil refuses nothing.
	do    handler
	check func(context.Context, call) error

	mu       sync.Mutex // guards the following fields
	finished map[string]calls.Finished
	order    []string // of calls, as they finished
	asked    []calls.Recorded
	resolved []calls.Resolved
	begun    []string // the names passed to handlers, in order
}

// newFixture replaces empty fields of opts with the fakes.
func newFixture(t testing.TB, opts Options) *fixture {
	t.Helper()
	f := &fixture{t: t, ledger: &storetest.Ledger{}, questions: &storetest.Confirmations{}, finished: map[string]calls.Finished{}, log: &lines{}}
	f.tools = loadChecked(t, f.handle, func(ctx context.Context, c call) error {
		if f.check == nil {
			return nil
		}
		return f.check(ctx, c)
	}, entries()...)
	if opts.Ledger == nil {
		opts.Ledger = f.ledger
	}
	if opts.Confirmations == nil {
		opts.Confirmations = f.questions
	}
	opts.Logger = f.log.logger()
	f.e = New(opts)
	t.Cleanup(f.e.Close)
	return f
}

func (f *fixture) handle(ctx context.Context, c call) (registry.Result, error) {
	f.mu.Lock()
	f.begun = append(f.begun, c.Args.Name)
	f.mu.Unlock()
	if f.do == nil {
		return registry.Result{Data: "done"}, nil
	}
	return f.do(ctx, c)
}

// ran returns the names passed to handlers so far.
func (f *fixture) ran() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.begun...)
}

// talk begins a conversation of a user, which ends with the test.
func (f *fixture) talk(session, user string) *Runner {
	c := f.e.Begin(Conversation{
		Session: registry.Session{ID: session, UserID: user, ConversationID: "conv", Agent: "default", Vouched: true, Scopes: []string{"hr"}, Mode: spec.ModeVoice},
		Report: func(in calls.Input) {
			f.mu.Lock()
			defer f.mu.Unlock()
			switch in := in.(type) {
			case calls.Finished:
				if _, twice := f.finished[session+in.Call]; twice {
					f.t.Errorf("%s of %s has finished twice", in.Call, session)
				}
				f.finished[session+in.Call] = in
				f.order = append(f.order, in.Call)
			case calls.Recorded:
				f.asked = append(f.asked, in)
			case calls.Resolved:
				f.resolved = append(f.resolved, in)
			}
		},
	})
	f.t.Cleanup(func() { c.End(); c.Wait() })
	return c
}

// job is a call in the first turn of voice mode.
func (f *fixture) job(id, tool, raw string) calls.Run {
	return f.jobIn(spec.ModeVoice, id, tool, raw)
}

func (f *fixture) jobIn(mode spec.Mode, id, tool, raw string) calls.Run {
	f.t.Helper()
	p, refused := f.tools.Prepare(tool, mode, json.RawMessage(raw))
	if refused != nil {
		f.t.Fatalf("%s", refused.Encode())
	}
	return calls.Run{Call: id, Turn: 1, Prepared: p, Keys: calls.Keys{Idempotency: "provider:" + id, Business: p.BusinessKey()}}
}

// answer returns the answer of a call of a session, if it has finished.
func (f *fixture) answer(session, call string) (registry.Envelope, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.finished[session+call]
	return r.Envelope, ok
}

// run runs a single call of a session, and returns its answer.
func (f *fixture) run(c *Runner, j calls.Run) registry.Envelope {
	f.t.Helper()
	c.Run(j)
	c.Wait()
	env, ok := f.answer(c.c.Session.ID, j.Call)
	if !ok {
		f.t.Fatalf("%s was not reported as finished", j.Call)
	}
	return env
}

// only returns the one entry of the ledger.
func (f *fixture) only() (state string) {
	f.t.Helper()
	all := f.ledger.Entries()
	if len(all) != 1 {
		f.t.Fatalf("the ledger has %d entries", len(all))
	}
	return string(all[0].State)
}

// failed reports whether an answer is a failure of that type.
func failed(env registry.Envelope, want registry.ErrorType) bool {
	return !env.OK && env.Error != nil && env.Error.Type == want
}

// bubble runs a test in a synctest bubble with its own fixture.
func bubble(t *testing.T, opts Options, test func(*testing.T, *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t, opts)) })
}

// pass waits in a bubble.
func pass(d time.Duration) { <-time.After(d) }
