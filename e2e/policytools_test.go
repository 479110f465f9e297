package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/registry"
	"voicegw/registry/adapter"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
)

// stage contains the tools of the policy tests and counts their runs, so that tests check side effects rather than
// claims.
//
//	lookup {query, top_k = 5}  retrieval
//	forecast {city}            utility
//	wordy {}                   utility, text mode only
//	slow {}, slow_stoppable {} take 30 s; the second can be stopped
//	book {name, time, note}    writes; name and time are the business key; the note
//	                           "refuse" makes it fail before its effect, and
//	                           "break" after it
//	write {text}               writes, has no business key and is not idempotent
//	pay {amount, to}           writes, must be approved, has a preview
//	boom {}                    writes and panics
//	report {}                  non-blocking if the model supports that
type stage struct {
	box *toolbox
	// effects gets a line for each run of a tool that writes, synced before the tool continues; nil records none.
	effects *os.File

	mu      sync.Mutex // guards the following fields
	saw     map[string][]string
	stopped map[string]int
	holds   map[string]chan struct{} // held runs of a tool; closed to release them
	begun   chan string              // by the tools to the test: the one that began; never closed
}

// mostRuns limits the runs of tools in a test.
const mostRuns = 256

// slowTime is the duration of the slow tools unless released.
const slowTime = 30 * time.Second

// newStage makes tools over an in-memory store.
func newStage(t testing.TB) *stage {
	t.Helper()
	o := folderOf(t)
	kept, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error("closing the store:", err)
		}
		testutil.CheckFolder(t, o.Dir)
	})
	return newStageOn(t, kept)
}

// folderOf puts the store of a test into a folder.
func folderOf(t testing.TB) store.Options {
	return store.Options{Dir: t.TempDir(), Sync: store.SyncInterval}
}

// newStageOn makes the stage's and more tools over the caller's store.
func newStageOn(t testing.TB, kept *store.Store, more ...registry.Entry) *stage {
	t.Helper()
	s := &stage{saw: map[string][]string{}, stopped: map[string]int{}, holds: map[string]chan struct{}{}, begun: make(chan string, mostRuns)}
	s.hold("slow")
	s.hold("slow_stoppable")
	data, handlers := s.tools(t, more)
	tools, err := registry.Load(data, registry.Options{Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	tools.Lock()
	s.box = &toolbox{registry: tools, store: kept, release: s.releaseAll}
	return s
}

// tools returns the stage's entries and handlers.
func (s *stage) tools(t testing.TB, more []registry.Entry) ([]byte, map[string]registry.Handler) {
	t.Helper()
	writes := func(e *spec.Spec) {
		e.Category, e.SideEffects, e.Idempotent = spec.CategoryAction, spec.SideEffectsWrites, false
	}
	entries := []registry.Entry{
		testTool(t, "lookup", `"query":{"type":"string","minLength":1},"top_k":{"type":"integer","minimum":1,"maximum":20,"default":5}`, `"query"`, func(e *spec.Spec) {
			e.Category, e.SideEffects = spec.CategoryRetrieval, spec.SideEffectsReadOnly
		}),
		testTool(t, "forecast", `"city":{"type":"string"}`, `"city"`, func(*spec.Spec) {}),
		testTool(t, "wordy", ``, ``, func(e *spec.Spec) { e.AllowedModes = []spec.Mode{spec.ModeText} }),
		testTool(t, "slow", ``, ``, func(*spec.Spec) {}),
		testTool(t, "slow_stoppable", ``, ``, func(e *spec.Spec) { e.Cancellable = true }),
		testTool(t, "book", `"name":{"type":"string"},"time":{"type":"string"},"note":{"type":"string"}`, `"name","time"`, func(e *spec.Spec) {
			writes(e)
			e.IdempotencyKey = "{name} {time}"
		}),
		testTool(t, "write", `"text":{"type":"string"}`, `"text"`, writes),
		testTool(t, "pay", `"amount":{"type":"integer","minimum":1},"to":{"type":"string"}`, `"amount","to"`, func(e *spec.Spec) {
			writes(e)
			e.RequiresConfirmation, e.Preview = true, "Pay {amount} to {to}"
		}),
		testTool(t, "boom", ``, ``, writes),
		testTool(t, "report", ``, ``, func(e *spec.Spec) {
			e.Behavior, e.Scheduling, e.Cancellable = spec.BehaviorNonBlocking, spec.SchedulingWhenIdle, true
		}),
	}
	entries = append(entries, more...)
	handlers := map[string]registry.Handler{}
	for _, e := range entries {
		handlers[e.ToolID] = registry.Bind(s.execute)
	}
	return registrytest.File(t, entries...), handlers
}

// testTool returns a tool for tests with its parameters and the required ones.
func testTool(t testing.TB, id, params, required string, change func(*spec.Spec)) registry.Entry {
	t.Helper()
	schema := json.RawMessage(`{"type":"object","properties":{` + params + `},"required":[` + required + `],"additionalProperties":false}`)
	declared := spec.Spec{
		ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility,
		SideEffects: spec.SideEffectsNone, Idempotent: true, AllowedModes: []spec.Mode{spec.ModeVoice, spec.ModeText},
		LatencyBudgetMS: 60_000, TimeoutMS: 60_000, Parameters: schema,
	}
	change(&declared)
	openai, err := adapter.OpenAIParameters(schema)
	if err != nil {
		t.Fatal(err)
	}
	gemini, err := adapter.GeminiParameters(schema)
	if err != nil {
		t.Fatal(err)
	}
	if gemini == nil { // Gemini's form of a tool without parameters
		gemini = json.RawMessage(`{"type":"OBJECT","properties":{}}`)
	}
	return registry.Entry{Spec: declared, Summary: "A tool of a test.", Guide: "# " + id + "\n",
		Forms: registry.Forms{OpenAI: openai, OpenAIChat: openai, Gemini: gemini}}
}

// anyArgs accepts any arguments unchanged.
type anyArgs struct{ json.RawMessage }

// execute runs every tool of the stage.
func (s *stage) execute(ctx context.Context, call registry.Call[anyArgs, struct{}]) (registry.Result, error) {
	s.mu.Lock()
	s.saw[call.Tool] = append(s.saw[call.Tool], string(call.Args.RawMessage))
	n := len(s.saw[call.Tool])
	wait := s.holds[call.Tool]
	s.mu.Unlock()
	if call.Tool == "book" && strings.Contains(string(call.Args.RawMessage), "refuse") {
		return registry.Result{}, registry.Errorf(registry.ErrorPermanent, "The book is closed.")
	}
	if err := s.effect(call.Tool, call.Args.RawMessage); err != nil {
		return registry.Result{}, err
	}
	if call.Tool == "boom" || strings.Contains(string(call.Args.RawMessage), "break") {
		panic("a secret of the handler")
	}
	s.begun <- call.Tool
	if wait != nil {
		stop := ctx.Done()
		if call.Tool != "slow_stoppable" && call.Tool != "report" {
			stop = nil // it ignores its context
		}
		select {
		case <-wait:
		case <-time.After(slowTime):
		case <-stop:
			s.mu.Lock()
			s.stopped[call.Tool]++
			s.mu.Unlock()
			return registry.Result{}, ctx.Err()
		}
	}
	return registry.Result{Data: map[string]any{"run": n, "tool": call.Tool}}, nil
}

// effect performs the side effect of a tool that writes.
func (s *stage) effect(tool string, args json.RawMessage) error {
	if s.effects == nil || !slices.Contains([]string{"book", "write", "pay"}, tool) {
		return nil
	}
	if _, err := fmt.Fprintf(s.effects, "%s %s\n", tool, args); err != nil {
		return err
	}
	return s.effects.Sync()
}

// hold blocks the runs of a tool until release.
func (s *stage) hold(tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[tool] = make(chan struct{})
}

// release releases the runs of a tool, present and future.
func (s *stage) release(tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := s.holds[tool]; wait != nil {
		close(wait)
		delete(s.holds, tool)
	}
}

func (s *stage) releaseAll() {
	for _, tool := range []string{"lookup", "forecast", "slow", "slow_stoppable", "book", "write", "pay", "report"} {
		s.release(tool)
	}
}

// runs returns the arguments of each run of a tool, as its handler got them.
func (s *stage) runs(tool string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.saw[tool])
}

// waitStops waits until this many runs of a tool were stopped: the audit may record a call before its goroutine
// notices.
func (s *stage) waitStops(t testing.TB, tool string, times int) {
	t.Helper()
	testutil.WaitUntil(t, tool+" was stopped", func() bool { return s.stops(tool) == times })
}

// stops counts a tool's stopped runs.
func (s *stage) stops(tool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped[tool]
}

// waitBegun waits until a run of the tool begins, ignoring other tools.
func (s *stage) waitBegun(t testing.TB, tool string) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case began := <-s.begun:
			if began == tool {
				return
			}
		case <-late:
			t.Fatalf("%s did not begin", tool)
		}
	}
}

// ran checks the number of a tool's runs.
func (s *stage) ran(t testing.TB, tool string, times int) {
	t.Helper()
	if got := s.runs(tool); len(got) != times {
		t.Errorf("%s ran %d times, want %d: %v", tool, len(got), times, got)
	}
}
