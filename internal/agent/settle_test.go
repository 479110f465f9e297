package agent_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/agent"
	"voicegw/internal/strict"
	"voicegw/internal/testutil"
	"voicegw/store"
)

// twoNodes are two catalogs with stores on one server.
func twoNodes(t *testing.T) [2]*agent.Catalog {
	t.Helper()
	stores := storesOfNodes(t, 2)
	return [2]*agent.Catalog{newCatalog(stores[0].Agents), newCatalog(stores[1].Agents)}
}

// storesOfNodes are the stores of n nodes, on one server.
func storesOfNodes(t testing.TB, n int) (stores []*store.Store) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Port: -1, JetStream: true, StoreDir: filepath.Join(t.TempDir(), "nats"), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testutil.WaitLimit) {
		t.Fatal("the server does not start")
	}
	for range n {
		keep, err := store.Open(t.Context(), store.Options{URL: s.ClientURL()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { keep.Close() })
		stores = append(stores, keep)
	}
	return stores
}

// BenchmarkSeenOnThreeNodes measures the time until three nodes have an edit of one of 1,000 agents with 200 tools: the
// mean, and the longest (worst-ms).
func BenchmarkSeenOnThreeNodes(b *testing.B) {
	stores := storesOfNodes(b, 3)
	w := fill(b, stores[0].Agents)
	var nodes []*agent.Catalog
	for _, s := range stores {
		c := agent.New(agent.Options{Default: agent.Agent{ID: "default"}, World: w, Edits: s.Agents})
		testutil.WaitUntil(b, "the node has all agents", func() bool { return len(c.Snapshot().All()) == 1001 })
		nodes = append(nodes, c)
	}
	var worst time.Duration
	n := 0
	for b.Loop() {
		n++
		playbook := fmt.Sprint("Version ", n)
		began := time.Now()
		if _, _, err := nodes[n%3].Put(b.Context(), agent.Edit{Name: "x", Data: fmt.Appendf(nil, `{"id":"agent-7","name":"Agent","playbook":%q}`, playbook), Seen: agent.Seen{Any: true}}); err != nil {
			b.Fatal(err)
		}
		for _, c := range nodes {
			for seen := false; !seen; runtime.Gosched() {
				e, ok := c.Snapshot().Get("agent-7")
				seen = ok && e.Playbook == playbook
			}
		}
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}

// TestEditIsSeenOnAllNodes: an edit by any node reaches all three.
func TestEditIsSeenOnAllNodes(t *testing.T) {
	var nodes []*agent.Catalog
	for _, s := range storesOfNodes(t, 3) {
		nodes = append(nodes, newCatalog(s.Agents))
	}
	seen := agent.Seen{Absent: true}
	for i, writer := range nodes {
		began := time.Now()
		made, err := put(t, writer, fmt.Sprintf("id: desk\nname: Desk\nplaybook: Version %d\n", i), seen)
		if err != nil {
			t.Fatal(err)
		}
		seen = is(made.Tag())
		for k, c := range nodes {
			testutil.WaitUntil(t, "a node sees the edit", func() bool {
				e, ok := c.Snapshot().Get("desk")
				return ok && e.Tag() == made.Tag() && e.Playbook == made.Playbook
			})
			t.Logf("the edit of node %d was seen on node %d within %s", i, k, time.Since(began))
		}
		if a, b, c := nodes[0].Snapshot().Version(), nodes[1].Snapshot().Version(), nodes[2].Snapshot().Version(); a != b || b != c {
			t.Errorf("the versions of all agents are %s, %s and %s", a, b, c)
		}
	}
}

// TestDeletedAndSwitchedToAtOnce: one node deletes an agent while the other makes another agent switch to it. One of the
// two succeeds, and no agent switches to a missing one.
func TestDeletedAndSwitchedToAtOnce(t *testing.T) {
	nodes := twoNodes(t)
	deletions, switches := 0, 0
	for i := range 60 {
		target, from := fmt.Sprintf("target-%d", i), fmt.Sprintf("from-%d", i)
		plain := fmt.Sprintf("id: %s\nname: F\nplaybook: x\n", from)
		made, err := put(t, nodes[0], fmt.Sprintf("id: %s\nname: T\nplaybook: x\n", target), agent.Seen{Absent: true})
		if err != nil {
			t.Fatal(err)
		}
		// Half of them are new agents, and half exist without the switch.
		seen := agent.Seen{Absent: true}
		if i%2 == 0 {
			was, err := put(t, nodes[1], plain, seen)
			if err != nil {
				t.Fatal(err)
			}
			seen = is(was.Tag())
		}
		testutil.WaitUntil(t, "the other node sees the target", func() bool { _, ok := nodes[1].Snapshot().Get(target); return ok })
		var both sync.WaitGroup
		var deleted, switched error
		both.Go(func() { deleted = nodes[0].Delete(t.Context(), target, is(made.Tag())) })
		both.Go(func() {
			_, switched = put(t, nodes[1], plain+"switch_to: ["+target+"]\n", seen)
		})
		both.Wait()
		_, used := errors.AsType[*agent.UsedError](deleted)
		_, wrong := errors.AsType[*strict.Error](switched)
		if deleted == nil && !wrong || switched == nil && !used || deleted != nil && switched != nil {
			t.Fatalf("%d: the deletion: %v; the switch: %v", i, deleted, switched)
		}
		if deleted == nil {
			deletions++
		} else {
			switches++
		}
		for n, node := range nodes {
			testutil.WaitUntil(t, fmt.Sprintf("node %d agrees", n), func() bool {
				now := node.Snapshot()
				_, there := now.Get(target)
				e, ok := now.Get(from)
				return there == (switched == nil) && ok == (switched == nil || i%2 == 0) && (!ok || len(e.SwitchTo) == 1 == (switched == nil))
			})
		}
	}
	t.Logf("%d deletions and %d switches were first", deletions, switches)
}

// TestReloadedFiles: new files apply to later snapshots, below the edits; sessions keep the agent with which they began.
func TestReloadedFiles(t *testing.T) {
	c := newCatalog(openStore(t).Agents, file("billing"), file("old"))
	edited, err := put(t, c, "id: sales\nname: S\nplaybook: x\nswitch_to: [billing]\n", agent.Seen{Absent: true})
	if err != nil {
		t.Fatal(err)
	}
	before := c.Snapshot()
	was, _ := before.Get("billing")
	changed := file("billing")
	changed.Playbook = "Changed."
	files := []agent.Agent{changed, file("new"), file("sales")}
	if c.SameFiles(files) || !c.SameFiles([]agent.Agent{file("billing"), file("old")}) {
		t.Error("changed files are not noticed")
	}
	c.Reload(t.Context(), files)
	now := c.Snapshot()
	if e, _ := now.Get("billing"); e.Playbook != "Changed." || now.Version() == before.Version() {
		t.Errorf("billing is %+v", e)
	}
	if e, _ := now.Get("sales"); e.Source != agent.SourceStore || e.Revision != edited.Revision {
		t.Errorf("sales is %+v", e)
	}
	if _, ok := now.Get("old"); ok {
		t.Error("the agent of a removed file is still there")
	}
	if e, _ := before.Get("billing"); e.Playbook == "Changed." {
		t.Error("an older snapshot has changed")
	}
	if e := c.Pinned(t.Context(), "billing", was.Version); e == nil || e.Playbook != was.Playbook {
		t.Errorf("the version before is %+v", e)
	}
}
