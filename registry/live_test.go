package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

const liveProbe = `parameters: {"type":"object","properties":{
	"agent":{"type":"string","description":"To whom."},
	"tools":{"type":"array","items":{"type":"string"}}},"required":["agent"],"additionalProperties":false}`

// liveRegistry has a tool whose enums are filled from agents and from tools, and kb_search.
func liveRegistry(t testing.TB, logged *bytes.Buffer) *Registry {
	t.Helper()
	e, opts, _ := simple(t, nil, liveProbe, `dynamic: {"/properties/agent/enum": "agents.switchable", "/properties/tools/items/enum": "tools"}`)
	opts.Handlers = map[string]Handler{
		"kb_search": Bind(kbHandler),
		"probe": Bind(func(_ context.Context, call Call[json.RawMessage, none]) (Result, error) {
			return Result{Data: call.Args}, nil
		}),
	}
	opts.Logger = slog.New(slog.NewTextHandler(logged, nil))
	return mustLoad(t, opts, e, entry(t, testutil.KBSearchSchema))
}

func agentsAre(names ...string) LiveValues {
	return func(source string, _ Session) []string {
		if source != spec.LiveAgents {
			panic("asked for " + source)
		}
		return names
	}
}

var inText = Session{Mode: spec.ModeText}

// TestFill: an enum has the values of the session in every form and in the check of calls. The registry's version stays;
// the version of the session's tools depends on the values.
func TestFill(t *testing.T) {
	r := liveRegistry(t, new(bytes.Buffer))
	base := r.Snapshot()
	s := base.Fill(inText, agentsAre("sales", "billing", "sales", "", "a\x00b", strings.Repeat("x", 201)))
	tool, _ := s.Tool("probe")
	for name, form := range map[string]json.RawMessage{"parameters": tool.Parameters, "openai": tool.Forms.OpenAI, "chat": tool.Forms.OpenAIChat, "gemini": tool.Forms.Gemini} {
		if !strings.Contains(string(form), `["billing","sales"]`) || !strings.Contains(string(form), `["kb_search","probe"]`) {
			t.Errorf("%s: %s", name, form)
		}
	}
	if env := s.Execute(t.Context(), "probe", spec.ModeText, json.RawMessage(`{"agent":"sales","tools":["kb_search"]}`), Session{}); !env.OK {
		t.Error(env.Error)
	}
	env := s.Execute(t.Context(), "probe", spec.ModeText, json.RawMessage(`{"agent":"boss"}`), Session{})
	if env.OK || env.Error.Type != ErrorValidation || !strings.Contains(env.Error.Message, "billing") {
		t.Errorf("another agent: %s", env.Encode())
	}
	if s.Version() != base.Version() || env.Meta.RegistryVersion != base.Version() || base.ToolsVersion() != base.Version() {
		t.Errorf("versions %s, %s, %s", s.Version(), env.Meta.RegistryVersion, base.Version())
	}
	if !regexp.MustCompile(`^1\.0\.[0-9a-f]{8}\+[0-9a-f]{8}$`).MatchString(s.ToolsVersion()) {
		t.Errorf("the version of the tools is %s", s.ToolsVersion())
	}
	if again := base.Fill(inText, agentsAre("billing", "sales")); again != s {
		t.Error("the same values make another snapshot")
	}
	if other := base.Fill(inText, agentsAre("billing")); other == s || other.ToolsVersion() == s.ToolsVersion() {
		t.Error("other values have the same version")
	}
	if env := base.Execute(t.Context(), "probe", spec.ModeText, json.RawMessage(`{"agent":"boss"}`), Session{}); !env.OK {
		t.Errorf("Fill has changed its snapshot: %v", env.Error)
	}
}

// TestFillDescribeTool: describe_tool describes only the tools of the session.
func TestFillDescribeTool(t *testing.T) {
	r := liveRegistry(t, new(bytes.Buffer))
	s := r.Snapshot().Only([]string{"kb_search"}).Fill(inText, nil)
	for args, want := range map[string]bool{`{"tool":"kb_search"}`: true, `{"tool":"probe"}`: false, `{"tool":"describe_tool"}`: false} {
		if env := s.Execute(t.Context(), spec.DescribeTool, spec.ModeText, json.RawMessage(args), Session{}); env.OK != want {
			t.Errorf("%s: %s", args, env.Encode())
		}
	}
	tool, _ := s.Tool(spec.DescribeTool)
	if !strings.Contains(string(tool.Forms.Gemini), `["kb_search"]`) {
		t.Errorf("Gemini gets %s", tool.Forms.Gemini)
	}
}

// TestFillWithoutValues: a tool without values for its enum is left out, other tools do not name it, and the log reports it
// once.
func TestFillWithoutValues(t *testing.T) {
	var logged bytes.Buffer
	r := liveRegistry(t, &logged)
	for range 3 {
		s := r.Snapshot().Fill(inText, agentsAre())
		if _, has := s.Tool("probe"); has {
			t.Fatal("the tool is not left out")
		}
		tool, _ := s.Tool(spec.DescribeTool)
		if strings.Contains(string(tool.Parameters), "probe") {
			t.Errorf("describe_tool offers it: %s", tool.Parameters)
		}
		if with := r.Snapshot().Fill(inText, agentsAre("a")); with.ToolsVersion() == s.ToolsVersion() {
			t.Error("the version is the same with and without the tool")
		}
	}
	if n := strings.Count(logged.String(), "a tool is left out"); n != 1 || !strings.Contains(logged.String(), "source=agents.switchable") {
		t.Errorf("the log has it %d times: %s", n, logged.String())
	}
}

// TestFillIsBounded: the values of an enum and the cached fillings have limits, and a snapshot with tools that were not
// loaded shares no fillings.
func TestFillIsBounded(t *testing.T) {
	r := liveRegistry(t, new(bytes.Buffer))
	base := r.Snapshot()
	for i := range maxFillings + 10 {
		base.fillings.get(fmt.Sprint(i), maxFillings, func() *Snapshot { return base })
	}
	first := base.Fill(inText, agentsAre("a"))
	if n := len(base.fillings.all); n != 11 || base.Fill(inText, agentsAre("a")) != first {
		t.Errorf("%d fillings are cached", n)
	}
	var many []string
	for i := range 2 * maxLiveValues {
		many = append(many, fmt.Sprint("agent", i))
	}
	tool, _ := base.Fill(inText, agentsAre(many...)).Tool("probe")
	if n := strings.Count(string(tool.Parameters), `"agent`); n != maxLiveValues+2 {
		t.Errorf("an enum has %d values", n)
	}
	other := *base
	probe, _ := base.Tool("probe")
	changed := *probe
	compiled := *probe.compiled
	changed.compiled = &compiled
	other.tools = map[string]*Tool{"probe": &changed}
	other.sorted = []*Tool{&changed}
	if other.sharedFillings() != nil {
		t.Error("a tool that was not loaded shares fillings")
	}
}

// TestFillInAnotherMode: Fill requests no values for a tool that the session's mode does not allow.
func TestFillInAnotherMode(t *testing.T) {
	e, opts, _ := simple(t, nil,
		`parameters: {"type":"object","properties":{"c":{"type":"string"}},"additionalProperties":false}`, `allowedModes: ["text"]`, `dynamic: {"/properties/c/enum": "calendars"}`)
	opts.Handlers["probe"] = Bind(func(context.Context, Call[json.RawMessage, none]) (Result, error) { return Result{}, nil })
	s := mustLoad(t, opts, e).Snapshot().Fill(Session{Mode: spec.ModeVoice}, func(string, Session) []string {
		t.Error("values were requested")
		return nil
	})
	if _, has := s.Tool("probe"); !has {
		t.Error("the tool is left out")
	}
}

func BenchmarkFill(b *testing.B) {
	base := liveRegistry(b, new(bytes.Buffer)).Snapshot()
	live := agentsAre("sales", "billing")
	b.ReportAllocs()
	for b.Loop() {
		base.Fill(inText, live)
	}
}

// TestLiveSourcesAreSorted keeps the hints of errors in order.
func TestLiveSourcesAreSorted(t *testing.T) {
	if !slices.IsSorted(spec.LiveSources()) {
		t.Error(spec.LiveSources())
	}
}
