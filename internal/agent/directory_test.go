package agent_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/agent"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
)

// newDirectory uses a store in memory, with two agents of files.
func newDirectory(t *testing.T) *agent.Directory {
	t.Helper()
	keep, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keep.Close() })
	data, o := registrytest.Inspected(t, registrytest.Project(t))
	o.Settings = map[string]registry.ToolSettings{"image_generate": {Off: true}}
	loaded, err := registry.Load(data, o)
	if err != nil {
		t.Fatal(err)
	}
	d := &agent.Directory{}
	d.Set(agent.New(agent.Options{
		Default: agent.Agent{ID: "default", Name: "default"}, Edits: keep.Agents,
		Files: []agent.Agent{{ID: "billing", Name: "Billing", Playbook: "Bills."}, {ID: "reception", Name: "R", Playbook: "Hello."}},
		World: func() agent.World { return agentsWorld(loaded.Snapshot()) },
	}), loaded.Snapshot)
	return d
}

func agentsWorld(tools *registry.Snapshot) agent.World {
	var w agent.World
	for _, t := range tools.All() {
		w.Tools = append(w.Tools, t.ToolID)
	}
	w.Tools = append(w.Tools, tools.Off()...)
	return w
}

func refusal(t *testing.T, err error, kind registry.ErrorType, parts ...string) {
	t.Helper()
	e, ok := errors.AsType[*registry.ToolError](err)
	if !ok || e.Type != kind {
		t.Errorf("%v, want %s", err, kind)
		return
	}
	details, _ := json.Marshal(e.Details)
	for _, part := range parts {
		if told := e.Message + " " + e.Suggestion + " " + string(details); !strings.Contains(told, part) {
			t.Errorf("%s lacks %q", told, part)
		}
	}
}

// TestAgentsByTools: tools make, list, change and delete agents; an edit based on an old state is refused.
func TestAgentsByTools(t *testing.T) {
	d := newDirectory(t)
	name, playbook, about := "Bücher & Hefte", "You sell books.", "Books"
	create := registry.AgentChange{Name: &name, Playbook: &playbook, Tools: []string{"kb_search", "kb-get", "kb_search", "nothing_like_it"}, By: "user:ada"}
	if err := d.Check(create); err != nil {
		t.Fatal(err)
	}
	if n := d.List(10).Total; n != 3 {
		t.Fatalf("a check has made an agent: there are %d", n)
	}
	made, err := d.Save(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	registrytest.Fits(t, "agent-create", made)
	want := []registry.InvalidName{{Name: "kb-get", Reason: "is not a tool; did you mean kb_get?"}, {Name: "nothing_like_it", Reason: "is not a tool"}}
	if made.ID != "bucher-hefte" || !made.Created || !slices.Equal(made.Tools, []string{"kb_search"}) || !slices.Equal(made.InvalidTools, want) {
		t.Errorf("%+v", made)
	}
	refusal(t, d.Check(create), registry.ErrorConflict, "bucher-hefte", "agent_update")
	changed, err := d.Save(t.Context(), registry.AgentChange{ID: made.ID, State: made.State, Description: &about, By: "user:ada"})
	if err != nil || changed.Created || changed.State == made.State || changed.Description != "Books" || changed.Name != name || !slices.Equal(changed.Tools, []string{"kb_search"}) {
		t.Errorf("%+v, %v", changed, err)
	}
	_, err = d.Save(t.Context(), registry.AgentChange{ID: made.ID, State: made.State, Description: &name})
	refusal(t, err, registry.ErrorConflict, "changed in the meantime", "agent_get")
	refusal(t, d.CheckDelete(made.ID, made.State), registry.ErrorConflict, "changed in the meantime")
	paused, err := d.Save(t.Context(), registry.AgentChange{ID: made.ID, Tools: []string{"image_generate", "kb_search"}})
	if err != nil || len(paused.InvalidTools) > 0 || !slices.Equal(paused.Tools, []string{"image_generate", "kb_search"}) {
		t.Errorf("a tool that is switched off for a while was removed: %+v, %v", paused, err)
	}
	registrytest.Fits(t, "agent-update", paused)
	changed = paused
	shown, err := d.Get(made.ID)
	if err != nil || shown.Playbook != playbook || shown.State != changed.State || shown.AllTools {
		t.Errorf("%+v, %v", shown, err)
	}
	list := d.List(2)
	if len(list.Agents) != 2 || list.Total != 4 || list.Default != "default" {
		t.Errorf("%+v", list)
	}
	registrytest.Fits(t, "agent-list", list)
	for _, id := range []string{made.ID, "default", "billing"} { // with its own tools, and with all
		shown, err := d.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		registrytest.Fits(t, "agent-get", shown)
	}
	deleted, err := d.Delete(t.Context(), made.ID, changed.State)
	if err != nil || deleted.Stays {
		t.Errorf("%+v, %v", deleted, err)
	}
	registrytest.Fits(t, "agent-delete", deleted)
	_, err = d.Get(made.ID)
	refusal(t, err, registry.ErrorNotFound, made.ID)
	_, err = d.Get("biling")
	refusal(t, err, registry.ErrorNotFound, "Did you mean billing?")
	_, err = d.Delete(t.Context(), "billing", "")
	refusal(t, err, registry.ErrorConflict, "comes from a file")
}

// TestWrongAgentsByTools: one answer has all problems, even if no tool of the list exists.
func TestWrongAgentsByTools(t *testing.T) {
	d := newDirectory(t)
	long, playbook := strings.Repeat("x", 200), strings.Repeat("y", 70_000)
	for _, tools := range [][]string{{"kb_serch"}, {"kb_serch", "kb_get"}} {
		change := registry.AgentChange{Name: &long, Playbook: &playbook, Tools: tools}
		refusal(t, d.Check(change), registry.ErrorValidation, "name has 200 characters", "playbook has 70000 bytes", "did you mean kb_search?")
		_, err := d.Save(t.Context(), change)
		refusal(t, err, registry.ErrorValidation, "did you mean kb_search?")
	}
	name, fine := "Fine", "Fine."
	refusal(t, d.Check(registry.AgentChange{Name: &name, Playbook: &fine, Tools: []string{"kb_serch"}}), registry.ErrorValidation, "kb_search")
	refusal(t, d.Check(registry.AgentChange{ID: "nobody", Name: &name}), registry.ErrorNotFound)
	if n := d.List(10).Total; n != 3 {
		t.Errorf("there are %d agents", n)
	}
}

// TestAgentToolsAreOff: the tools are off unless the configuration enables them.
func TestAgentToolsAreOff(t *testing.T) {
	for _, on := range []bool{false, true} {
		data, o := registrytest.Inspected(t, registrytest.Project(t))
		if !on {
			o.Settings = map[string]registry.ToolSettings{}
			for _, id := range agent.Tools() {
				o.Settings[id] = registry.ToolSettings{Off: true}
			}
		}
		loaded, err := registry.Load(data, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range agent.Tools() {
			tool, is := loaded.Snapshot().Tool(id)
			if is != on || is && (tool.SideEffects == spec.SideEffectsWrites) != tool.RequiresConfirmation {
				t.Errorf("%s exists: %t, want %t", id, is, on)
			}
		}
	}
}

func TestOutputsAreTheAnswers(t *testing.T) {
	registrytest.Describes[registry.AgentList](t, "agent-list")
	registrytest.Describes[registry.AgentShown](t, "agent-get")
	registrytest.Describes[registry.AgentSaved](t, "agent-create")
	registrytest.Describes[registry.AgentSaved](t, "agent-update")
	registrytest.Describes[registry.AgentDeleted](t, "agent-delete")
}
