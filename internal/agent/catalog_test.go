package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/agent"
	"voicegw/internal/strict"
	"voicegw/store"
)

func openStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func world() agent.World {
	return agent.World{Tools: []string{"kb_search", "kb_get"}, Providers: []agent.Provider{{Name: "gemini", Offered: true, Voices: func(string) []string { return []string{"Kore"} }}}}
}

func file(id string, switchTo ...string) agent.Agent {
	return agent.Agent{ID: id, Name: id, Playbook: "You are " + id + " of a file.", SwitchTo: switchTo}
}

func newCatalog(edits *store.Agents, files ...agent.Agent) *agent.Catalog {
	return agent.New(agent.Options{Default: agent.Agent{ID: "default", Name: "default"}, Files: files, World: world, Edits: edits})
}

func put(t *testing.T, c *agent.Catalog, document string, seen agent.Seen) (*agent.Entry, error) {
	t.Helper()
	e, _, err := c.Put(t.Context(), agent.Edit{Name: "doc", Data: []byte(document), Seen: seen, By: "key:1"})
	return e, err
}

func is(tag string) agent.Seen { return agent.Seen{Tags: []string{tag}} }

// TestWithoutDocuments: the agent of the configuration is the only one, and it has no version.
func TestWithoutDocuments(t *testing.T) {
	now := newCatalog(openStore(t).Agents).Snapshot()
	if len(now.All()) != 1 || now.Version() != "" || now.All()[0].Version != "" || now.All()[0].Source != agent.SourceConfig || now.Default() != "default" {
		t.Errorf("there is %+v, version %q", now.All(), now.Version())
	}
}

// TestLayers: an edit replaces a file, and a file the configuration. After the end of an edit the layer below applies
// again.
func TestLayers(t *testing.T) {
	c := newCatalog(openStore(t).Agents, file("billing"), file("default"))
	before := c.Snapshot()
	e, ok := before.Get("billing")
	if !ok || e.Source != agent.SourceFile || e.Tag() != e.Version || before.Version() == "" {
		t.Fatalf("billing is %+v", e)
	}
	edited, err := put(t, c, "id: billing\nname: Billing\nplaybook: Edited.\nvoices: {gemini: Kore}\n", is(e.Tag()))
	if err != nil || edited.Revision == 0 || edited.UpdatedBy != "key:1" {
		t.Fatalf("the edit: %+v, %v", edited, err)
	}
	now := c.Snapshot()
	if got, _ := now.Get("billing"); got.Playbook != "Edited." || got.Source != agent.SourceStore || got.Tag() == e.Tag() || now.Version() == before.Version() {
		t.Errorf("billing is %+v", got)
	}
	if got, _ := before.Get("billing"); got.Playbook == "Edited." {
		t.Error("an older snapshot has changed")
	}
	if err := c.Delete(t.Context(), "billing", is(edited.Tag())); err != nil {
		t.Error(err)
	}
	if got, _ := c.Snapshot().Get("billing"); got.Source != agent.SourceFile || c.Snapshot().Version() != before.Version() {
		t.Errorf("after the edit's end: %+v", got)
	}
	if err := c.Delete(t.Context(), "billing", agent.Seen{Any: true}); !errors.Is(err, agent.ErrFixed) {
		t.Errorf("deleting a file's: %v", err)
	}
	if err := c.Delete(t.Context(), "nobody", agent.Seen{Any: true}); !errors.Is(err, agent.ErrUnknown) {
		t.Errorf("deleting an unknown agent: %v", err)
	}
}

// TestStaleEditsAreRefused: each change names the state on which it is based.
func TestStaleEditsAreRefused(t *testing.T) {
	c := newCatalog(openStore(t).Agents, file("billing"))
	const document = "id: sales\nname: Sales\nplaybook: x\n"
	absent := agent.Seen{Absent: true}
	for _, seen := range []agent.Seen{{Any: true}, is("1")} {
		if _, err := put(t, c, document, seen); !errors.Is(err, agent.ErrChanged) {
			t.Errorf("a new one that was seen as %+v: %v", seen, err)
		}
	}
	first, err := put(t, c, document, absent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(t, c, document, absent); !errors.Is(err, agent.ErrExists) {
		t.Errorf("a second new one: %v", err)
	}
	second, err := put(t, c, document+"description: y\n", is(first.Tag()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(t, c, document, is(first.Tag())); !errors.Is(err, agent.ErrChanged) {
		t.Errorf("over an older state: %v", err)
	}
	if err := c.Delete(t.Context(), "sales", is(first.Tag())); !errors.Is(err, agent.ErrChanged) {
		t.Errorf("deleting an older state: %v", err)
	}
	if _, err := put(t, c, document, agent.Seen{Tags: []string{"x", second.Tag()}}); err != nil {
		t.Error(err)
	}
	if _, err := put(t, c, document, agent.Seen{Any: true}); err != nil {
		t.Error(err)
	}
}

// TestSwitchTargetsStay: an agent to which others switch cannot be deleted; an agent of a file can always be edited back.
func TestSwitchTargetsStay(t *testing.T) {
	c := newCatalog(openStore(t).Agents, file("billing", "default"))
	absent, any := agent.Seen{Absent: true}, agent.Seen{Any: true}
	for _, document := range []string{"id: sales\nname: Sales\nplaybook: x\n", "id: a\nname: A\nplaybook: x\nswitch_to: [sales, billing]\n", "id: b\nname: B\nplaybook: x\nswitch_to: [sales]\n"} {
		if _, err := put(t, c, document, absent); err != nil {
			t.Fatal(err)
		}
	}
	err := c.Delete(t.Context(), "sales", any)
	if used, ok := errors.AsType[*agent.UsedError](err); !ok || !slices.Equal(used.By, []string{"a", "b"}) {
		t.Fatalf("deleting a switch target: %v", err)
	}
	for _, id := range []string{"a", "b", "sales"} {
		if err := c.Delete(t.Context(), id, any); err != nil {
			t.Errorf("deleting %s: %v", id, err)
		}
	}
	if names := c.Snapshot().Names(); !slices.Equal(names, []string{"billing", "default"}) {
		t.Errorf("there is %v", names)
	}
}

// TestWrongEdits: an invalid edit is refused with all problems and changes nothing.
func TestWrongEdits(t *testing.T) {
	c := newCatalog(openStore(t).Agents, file("billing"))
	version := c.Snapshot().Version()
	_, err := put(t, c, "id: sales\nname: Sales\nplaybook: x\ntools: [kb-get]\nvoices: {gemini: kore}\nswitch_to: [biling]\n", agent.Seen{Absent: true})
	if wrong, ok := errors.AsType[*strict.Error](err); !ok || len(wrong.Problems) != 3 {
		t.Errorf("problems: %v", err)
	}
	for document, want := range map[string]string{
		"id: default\nname: D\nplaybook: x\nenabled: false\n": "cannot have enabled: false",
		"id: other\nname: O\nplaybook: x\n":                   `the document's agent is "other", not "billing"`,
	} {
		_, _, err := c.Put(t.Context(), agent.Edit{ID: map[bool]string{true: "billing"}[strings.HasPrefix(document, "id: other")], Name: "doc", Data: []byte(document), Seen: agent.Seen{Any: true}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", document, err)
		}
	}
	if c.Snapshot().Version() != version {
		t.Error("something has changed")
	}
}

// TestPinnedVersion: a session that continues at another gateway gets its agent in the version of its start.
func TestPinnedVersion(t *testing.T) {
	edits := openStore(t).Agents
	c := newCatalog(edits, file("billing"))
	other := newCatalog(edits) // a node without the file
	of, _ := c.Snapshot().Get("billing")
	first, err := put(t, c, "id: billing\nname: B\nplaybook: First.\n", agent.Seen{Any: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = put(t, c, "id: billing\nname: B\nplaybook: Second.\n", is(first.Tag())); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{of.Version: "You are billing of a file.", first.Version: "First.", "unknown": "Second.", "": "Second."} {
		if e := other.Pinned(t.Context(), "billing", version); e == nil || e.Playbook != want {
			t.Errorf("version %q is %+v, want %q", version, e, want)
		}
	}
	if err := c.Delete(t.Context(), "billing", agent.Seen{Any: true}); err != nil {
		t.Fatal(err)
	}
	if e := other.Pinned(t.Context(), "billing", first.Version); e == nil || e.Playbook != "First." {
		t.Errorf("after it was deleted: %+v", e)
	}
	if e := other.Pinned(t.Context(), "billing", "unknown"); e != nil {
		t.Errorf("an unknown version: %+v", e)
	}
}

// TestEditOfAnotherNode: an edit by a node with other tools and voices applies as far as it is valid here, reports the
// rest, and is stored unchanged.
func TestEditOfAnotherNode(t *testing.T) {
	edits := openStore(t).Agents
	there := agent.New(agent.Options{Default: agent.Agent{ID: "default"}, Edits: edits, World: func() agent.World {
		w := world()
		w.Tools = append(w.Tools, "crm_search")
		w.Providers = []agent.Provider{{Name: "gemini", Offered: true}, {Name: "acme", Offered: true}}
		return w
	}})
	if _, err := put(t, there, "id: billing\nname: B\nplaybook: x\ntools: [kb_get, crm_search]\nprovider: acme\nmodel: m\nvoices: {acme: Eve, gemini: kore}\n", agent.Seen{Absent: true}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	here := agent.New(agent.Options{Default: agent.Agent{ID: "default"}, Edits: edits, World: world, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	e, ok := here.Snapshot().Get("billing")
	if !ok || !slices.Equal(e.Tools, []string{"kb_get"}) || e.Provider != "" || e.Model != "" || len(e.Voices) != 0 || len(e.Problems) != 4 {
		t.Errorf("it works as %+v", e)
	}
	if was, _ := there.Snapshot().Get("billing"); e.Version != was.Version || e.Document.Provider != "acme" || len(e.Document.Tools) != 2 {
		t.Errorf("its document is %+v", e.Document)
	}
	if !strings.Contains(log.String(), "crm_search") {
		t.Errorf("the log has %s", log.String())
	}
}

// TestUnreadableEdit: an unreadable edit is ignored and logged.
func TestUnreadableEdit(t *testing.T) {
	edits := openStore(t).Agents
	if _, err := edits.Save(t.Context(), store.AgentEdit{ID: "billing", Document: []byte(`{"id":"billing"}`), At: time.Now()}, 0); err != nil {
		t.Fatal(err)
	}
	if e, ok := newCatalog(edits, file("billing")).Snapshot().Get("billing"); !ok || e.Source != agent.SourceFile {
		t.Errorf("billing is %+v", e)
	}
}

// thousand are 1,000 edits, each with 20 of 200 tools.
func thousand(b *testing.B) (*store.Agents, func() agent.World) {
	b.Helper()
	edits := openStore(b).Agents
	return edits, fill(b, edits)
}

// fill stores the thousand edits.
func fill(b *testing.B, edits *store.Agents) func() agent.World {
	b.Helper()
	w := world()
	for i := range 200 {
		w.Tools = append(w.Tools, fmt.Sprintf("tool_%d", i))
	}
	for i := range 1000 {
		document := fmt.Sprintf(`{"id":"agent-%d","name":"Agent %d","playbook":%q,"tools":["%s"],"switch_to":["default"]}`,
			i, i, strings.Repeat("You do this and never that. ", 150), strings.Join(w.Tools[10+i%100:30+i%100], `","`))
		if _, err := edits.Save(b.Context(), store.AgentEdit{ID: fmt.Sprintf("agent-%d", i), Document: []byte(document), At: time.Now()}, 0); err != nil {
			b.Fatal(err)
		}
	}
	return func() agent.World { return w }
}

// BenchmarkSnapshot1000 measures the first snapshot of 1,000 edited agents, as at a start.
func BenchmarkSnapshot1000(b *testing.B) {
	edits, w := thousand(b)
	for b.Loop() {
		if c := agent.New(agent.Options{Default: agent.Agent{ID: "default"}, World: w, Edits: edits}); len(c.Snapshot().All()) != 1001 {
			b.Fatal("agents are missing")
		}
	}
}

// BenchmarkEdit1000 measures an edit of one of them and the next snapshot.
func BenchmarkEdit1000(b *testing.B) {
	edits, w := thousand(b)
	c := agent.New(agent.Options{Default: agent.Agent{ID: "default"}, World: w, Edits: edits})
	c.Snapshot()
	n := 0
	for b.Loop() {
		n++
		_, _, err := c.Put(b.Context(), agent.Edit{Name: "x", Data: fmt.Appendf(nil, `{"id":"agent-7","name":"Agent","playbook":"Version %d"}`, n), Seen: agent.Seen{Any: true}})
		if err != nil {
			b.Fatal(err)
		}
		c.Snapshot()
	}
}

// BenchmarkGet1000 measures the lookup at the start of each session.
func BenchmarkGet1000(b *testing.B) {
	edits, w := thousand(b)
	c := agent.New(agent.Options{Default: agent.Agent{ID: "default"}, World: w, Edits: edits})
	c.Snapshot()
	for b.Loop() {
		if _, ok := c.Snapshot().Get("agent-500"); !ok {
			b.Fatal("it is missing")
		}
	}
}
