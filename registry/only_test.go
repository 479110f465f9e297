package registry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// TestOnly: a session sees only the tools that its agent may use, in lists, calls and guides.
func TestOnly(t *testing.T) {
	loaded, err := registry.Load(registrytest.Inspected(t, registrytest.Project(t)))
	if err != nil {
		t.Fatal(err)
	}
	whole := loaded.Snapshot()
	sub := whole.Only([]string{"kb_get", "nothing"})
	var ids []string
	for _, tool := range sub.Tools(spec.ModeText) {
		ids = append(ids, tool.ToolID)
	}
	if got := strings.Join(ids, " "); got != "describe_tool kb_get" {
		t.Errorf("the tools are %s", got)
	}
	if sub.Version() != whole.Version() {
		t.Errorf("the version is %s, of the whole %s", sub.Version(), whole.Version())
	}
	if _, env := sub.Prepare("kb_search", spec.ModeText, json.RawMessage(`{}`)); env == nil || env.Error.Type != registry.ErrorNotFound {
		t.Errorf("a tool of other agents answers %+v", env)
	}
	describe := func(s *registry.Snapshot) registry.Envelope {
		return s.Execute(t.Context(), spec.DescribeTool, spec.ModeText, json.RawMessage(`{"tool":"kb_search"}`), registry.Session{Mode: spec.ModeText})
	}
	if env := describe(sub); env.OK || strings.Contains(env.Error.Suggestion, "kb_search") {
		t.Errorf("the guide of a tool of other agents: %+v", env)
	}
	if env := describe(whole); !env.OK {
		t.Errorf("the whole snapshot has changed: %+v", env)
	}
	if none := whole.Only([]string{}); len(none.All()) > 0 {
		t.Errorf("no tools are %d tools", len(none.All()))
	}
}

// BenchmarkOnly measures the start of a session of an agent with 20 tools out of 200.
func BenchmarkOnly(b *testing.B) {
	object := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	var entries []registry.Entry
	var ids []string
	for i := range 200 {
		id := fmt.Sprintf("tool_number_%d", i)
		if i%10 == 0 {
			ids = append(ids, id)
		}
		entries = append(entries, registry.Entry{
			Spec: spec.Spec{
				ToolID: id, Version: "1.0.0", Description: "A tool.", Category: spec.CategoryUtility, SideEffects: spec.SideEffectsNone,
				Idempotent: true, AllowedModes: []spec.Mode{spec.ModeVoice}, LatencyBudgetMS: 1000, TimeoutMS: 60_000, Parameters: object,
			},
			Summary: "A tool.", Guide: "# " + id + "\n",
			Forms: registry.Forms{OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"n":{"type":"INTEGER"}}}`)},
		})
	}
	loaded, err := registry.Load(registrytest.Inspected(b, registrytest.File(b, entries...)))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if n := len(loaded.Snapshot().Only(ids).All()); n != 21 {
			b.Fatalf("%d tools", n)
		}
	}
}
