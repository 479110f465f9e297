package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// agentID is a unique id for a test.
func agentID(t *testing.T, name string) string {
	t.Helper()
	return strings.NewReplacer("/", "-", " ", "-").Replace(strings.ToLower(t.Name())) + "-" + name
}

func edited(a *Agents, id string) (AgentEdit, bool) {
	list, _ := a.List()
	i := slices.IndexFunc(list, func(e AgentEdit) bool { return e.ID == id })
	if i < 0 {
		return AgentEdit{}, false
	}
	return list[i], true
}

// testAgents: each write names the revision that its writer has seen, is visible at once, and changes the generation.
func testAgents(t *testing.T, s *Store) {
	a, id := s.Agents, agentID(t, "x")
	write := func(document string, known uint64) (uint64, error) {
		return a.Save(t.Context(), AgentEdit{ID: id, Document: []byte(document), At: time.Now(), By: "key:1"}, known)
	}
	before := a.Generation()
	first, err := write(`{"id":1}`, 0)
	if err != nil || a.Generation() == before {
		t.Fatalf("revision %d, %v; generation %d, before %d", first, err, a.Generation(), before)
	}
	if _, err := write(`{"id":2}`, 0); !errors.Is(err, ErrChanged) {
		t.Errorf("a second new one: %v", err)
	}
	second, err := write(`{"id":2}`, first)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := edited(a, id); !ok || string(got.Document) != `{"id":2}` || got.Revision != second || got.By != "key:1" {
		t.Errorf("listed is %+v", got)
	}
	for _, known := range []uint64{first, second + 1000} {
		if _, err := write(`{"id":3}`, known); !errors.Is(err, ErrChanged) {
			t.Errorf("over revision %d: %v", known, err)
		}
		if _, err := a.Remove(t.Context(), id, known); !errors.Is(err, ErrChanged) {
			t.Errorf("removing revision %d: %v", known, err)
		}
	}
	if _, err := a.Removed(t.Context(), id); !errors.Is(err, ErrUnknown) {
		t.Errorf("a current edit has ended: %v", err)
	}
	ended, err := a.Remove(t.Context(), id, second)
	if err != nil || ended <= second {
		t.Errorf("it ends at revision %d: %v", ended, err)
	}
	if at, err := a.Removed(t.Context(), id); err != nil || at != ended {
		t.Errorf("it has ended at revision %d, want %d: %v", at, ended, err)
	}
	if err := a.Follow(t.Context(), ended); err != nil {
		t.Error(err)
	}
	if got, ok := edited(a, id); ok {
		t.Errorf("after its end: %+v", got)
	}
	if third, err := write(`{"id":4}`, 0); err != nil || third <= second {
		t.Errorf("a new one of the same id: %d, %v", third, err)
	}
	for _, wrong := range []AgentEdit{{ID: "No", Document: []byte("{}")}, {ID: "a.b", Document: []byte("{}")}, {ID: id}} {
		if _, err := a.Save(t.Context(), wrong, 0); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if _, err := a.Save(t.Context(), AgentEdit{ID: id, Document: []byte(`"` + strings.Repeat("x", mostAgentBytes) + `"`)}, 0); !errors.Is(err, ErrTooBig) {
		t.Errorf("a document that is too big: %v", err)
	}
}

// testAgentsKept: a replaced version is found by its version, and not listed.
func testAgentsKept(t *testing.T, s *Store) {
	a, id := s.Agents, agentID(t, "x")
	old := AgentEdit{ID: id, Document: []byte(`{"old":true}`), At: time.Now()}
	for range 2 {
		if err := a.Keep(t.Context(), old, "v1", time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.Kept(t.Context(), id, "v1"); err != nil || string(got.Document) != `{"old":true}` {
		t.Errorf("stored is %+v, %v", got, err)
	}
	for _, other := range [][2]string{{id, "v2"}, {agentID(t, "y"), "v1"}, {"No", "v1"}} {
		if _, err := a.Kept(t.Context(), other[0], other[1]); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v: %v", other, err)
		}
	}
	if _, ok := edited(a, id); ok {
		t.Error("an old version is listed")
	}
}

// TestAgentsOfThreeNodes: all nodes see a write of one node within 200 ms.
func TestAgentsOfThreeNodes(t *testing.T) {
	url := startJetStream(t).ClientURL()
	var nodes []*Store
	for range 3 {
		nodes = append(nodes, openTest(t, Options{URL: url, Logger: testLog(t)}))
	}
	known, worst := uint64(0), time.Duration(0)
	sees := func(want string) bool {
		for _, n := range nodes {
			got, ok := edited(n.Agents, "billing")
			if ok != (want != "") || string(got.Document) != want {
				return false
			}
		}
		return true
	}
	for i := range 20 {
		by, document := nodes[i%3].Agents, `{"n":`+string(rune('0'+i%10))+`}`
		revision, err := by.Save(t.Context(), AgentEdit{ID: "billing", Document: []byte(document), At: time.Now()}, known)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		testutil.WaitUntil(t, "all nodes see it", func() bool { return sees(document) })
		known, worst = revision, max(worst, time.Since(began))
	}
	if _, err := nodes[0].Agents.Remove(t.Context(), "billing", known); err != nil {
		t.Fatal(err)
	}
	testutil.WaitUntil(t, "all nodes see that it is gone", func() bool { return sees("") })
	t.Logf("an edit is seen by all of three nodes after %v at most", worst)
}
