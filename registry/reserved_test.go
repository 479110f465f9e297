package registry

import (
	"context"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

// TestReservedNames: a tool may not have a name of the gateway's own tools, or a similar one, in a schema.json or a
// registry.
func TestReservedNames(t *testing.T) {
	for _, b := range Builtins() {
		if !slices.Contains(spec.ReservedNames(), b.ToolID) {
			t.Errorf("%s is built in and not reserved", b.ToolID)
		}
	}
	names := spec.ReservedNames()
	for _, name := range spec.ReservedNames() {
		names = append(names, strings.ReplaceAll(name, "_", ""), strings.Replace(name, "c", "c_", 1))
	}
	for _, name := range names {
		e := entry(t, testutil.KBSearchSchema)
		e.ToolID = name
		if _, problems := spec.Parse(mustMarshal(t, e.Spec)); len(problems) != 1 || problems[0].Path != "/toolId" || !strings.Contains(problems[0].Message, "built in") {
			t.Errorf("%s: %v", name, problems)
		}
		data, err := File{Tools: []Entry{e}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load(data, Options{Handlers: map[string]Handler{name: Bind(nothing)}}); err == nil || !strings.Contains(err.Error(), "built in") {
			t.Errorf("%s was loaded: %v", name, err)
		}
	}
	for _, name := range []string{"confirm_actions", "describe", "tool_describe", "kb_search"} {
		if why := spec.Reserved(name); why != "" {
			t.Errorf("%s %s", name, why)
		}
	}
}

func nothing(context.Context, Call[map[string]any, struct{}]) (Result, error) { return Result{}, nil }

// TestLookalikesAreNotLoaded: a model would confuse two tools whose names differ only in underscores.
func TestLookalikesAreNotLoaded(t *testing.T) {
	one, two := entry(t, testutil.KBSearchSchema, `toolId: "kb_search"`), entry(t, testutil.KBSearchSchema, `toolId: "kbsearch"`)
	data, err := File{Tools: []Entry{one, two}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Load(data, Options{Handlers: map[string]Handler{"kb_search": Bind(nothing), "kbsearch": Bind(nothing)}})
	if err == nil || !strings.Contains(err.Error(), "only in underscores") {
		t.Errorf("it was loaded: %v", err)
	}
}
