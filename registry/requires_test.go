package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

func idsOf(s *Snapshot, mode spec.Mode) (ids []string) {
	for _, t := range s.Tools(mode) {
		ids = append(ids, t.ToolID)
	}
	return ids
}

// scopesRegistry has two tools that require scopes, and one that does not.
func scopesRegistry(t testing.TB) *Registry {
	t.Helper()
	probe := Bind(func(_ context.Context, call Call[json.RawMessage, none]) (Result, error) {
		return Result{Data: call.Args}, nil
	})
	one := func(id, requires string) Entry {
		e, _, _ := simple(t, nil, `toolId: "`+id+`"`, "requires: "+requires)
		return e
	}
	return mustLoad(t, Options{Handlers: map[string]Handler{"open": probe, "book": probe, "cancel": probe}},
		one("open", "null"), one("book", `["calendar.write"]`), one("cancel", `["calendar.write", "kb:staff"]`))
}

// TestFor: a conversation has the tools for which it has all scopes, in lists, guides, live values and calls.
func TestFor(t *testing.T) {
	whole := scopesRegistry(t).Snapshot()
	for _, c := range []struct {
		name   string
		scopes []string
		only   []string
		want   []string
	}{
		{"no scope", nil, nil, []string{spec.DescribeTool, "open"}},
		{"one scope", []string{"calendar.write"}, nil, []string{"book", spec.DescribeTool, "open"}},
		{"another scope", []string{"calendar", "calendar.writer", "kb:staff"}, nil, []string{spec.DescribeTool, "open"}},
		{"all scopes", []string{"kb:staff", "calendar.write"}, nil, []string{"book", "cancel", spec.DescribeTool, "open"}},
		{"an agent without the tool", []string{"kb:staff", "calendar.write"}, []string{"cancel"}, []string{"cancel", spec.DescribeTool}},
		{"an agent with no other tool", nil, []string{"cancel"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := whole.For(Selection{Session: Session{Mode: spec.ModeText, Scopes: c.scopes}, Only: c.only})
			if got := idsOf(s, spec.ModeText); !slices.Equal(got, c.want) {
				t.Errorf("the tools are %v, want %v", got, c.want)
			}
			for _, id := range []string{"book", "cancel"} {
				_, refused := s.Prepare(id, spec.ModeText, nil)
				has := slices.Contains(c.want, id)
				if (refused == nil) != has || !has && refused.Error.Type != ErrorNotFound {
					t.Errorf("%s: %+v", id, refused)
				}
				if len(c.want) == 0 {
					continue
				}
				env := s.Execute(t.Context(), spec.DescribeTool, spec.ModeText, json.RawMessage(`{"tool":"`+id+`"}`), Session{})
				describe, _ := s.Tool(spec.DescribeTool)
				if env.OK != has || strings.Contains(string(describe.Forms.OpenAI), id) != has {
					t.Errorf("the guide of %s: %+v; offered is %s", id, env, describe.Forms.OpenAI)
				}
			}
		})
	}
	if got := whole.Permitted([]string{"calendar.write", "kb:staff"}); got != whole {
		t.Error("an unrestricted snapshot was copied")
	}
	if (*Snapshot)(nil).For(Selection{}) != nil || (*Snapshot)(nil).Permitted(nil) != nil {
		t.Error("nil has tools")
	}
}

// TestForSuggestions: a refused call names the tools that the model has, and no other.
func TestForSuggestions(t *testing.T) {
	s := scopesRegistry(t).Snapshot().For(Selection{Session: Session{Mode: spec.ModeVoice}, SwitchTo: []SwitchTarget{{ID: "desk"}}})
	_, env := s.Prepare("book", spec.ModeVoice, nil)
	if env == nil || !strings.Contains(env.Error.Suggestion, "open") || !strings.Contains(env.Error.Suggestion, spec.AgentSwitch) || strings.Contains(env.Error.Suggestion, "cancel") {
		t.Errorf("answered %+v", env)
	}
}

// TestPermittedLeavesTheClientsTools: a client's tools require no scope.
func TestPermittedLeavesTheClientsTools(t *testing.T) {
	own, problems := Declare(Declared{Name: "scroll", Description: "Scrolls the page."})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	with, err := scopesRegistry(t).Snapshot().With([]*Tool{own})
	if err != nil {
		t.Fatal(err)
	}
	if got := idsOf(with.Permitted(nil), spec.ModeVoice); !slices.Equal(got, []string{spec.DescribeTool, "open", "scroll"}) {
		t.Errorf("the tools are %v", got)
	}
}

// TestPermittedAndFilledIsShared: conversations with the same scopes share one filled snapshot.
func TestPermittedAndFilledIsShared(t *testing.T) {
	whole := scopesRegistry(t).Snapshot()
	get := func(scopes ...string) *Snapshot {
		return whole.For(Selection{Session: Session{Mode: spec.ModeText, Scopes: scopes}})
	}
	if get() != get("other") || get("calendar.write") == get() || get().ToolsVersion() == get("calendar.write").ToolsVersion() {
		t.Error("equal tools have different snapshots, or different ones share one")
	}
}

// TestRequiresIsInTheFile: the registry's file has the scopes, in the order of the author.
func TestRequiresIsInTheFile(t *testing.T) {
	e := entry(t, testutil.KBSearchSchema, `requires: ["z.z", "a"]`)
	if data := encodeFile(t, e); !bytes.Contains(data, []byte(`"requires": [`)) {
		t.Errorf("the file is %s", data)
	}
	tool, _ := mustLoad(t, Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler)}}, e).Snapshot().Tool("kb_search")
	if !slices.Equal(tool.Requires, []string{"z.z", "a"}) {
		t.Errorf("loaded: %v", tool.Requires)
	}
}
