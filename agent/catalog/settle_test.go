package catalog_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"voicegw/agent"
	"voicegw/agent/catalog"
	"voicegw/internal/await"
	"voicegw/internal/strict"
	"voicegw/store"
)

// twoNodes are two catalogs whose stores are on one server.
func twoNodes(t *testing.T) [2]*catalog.Catalog {
	t.Helper()
	s, err := server.NewServer(&server.Options{Port: -1, JetStream: true, StoreDir: filepath.Join(t.TempDir(), "nats"), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(await.Limit) {
		t.Fatal("the server does not start")
	}
	var nodes [2]*catalog.Catalog
	for i := range nodes {
		keep, err := store.Open(t.Context(), store.Options{URL: s.ClientURL()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { keep.Close() })
		nodes[i] = newCatalog(keep.Agents())
	}
	return nodes
}

// TestDeletedAndSwitchedToAtOnce: one node deletes an agent while the other makes another one switch to it.
// One of the two succeeds, whichever was first, and no agent switches to one that does not exist.
func TestDeletedAndSwitchedToAtOnce(t *testing.T) {
	nodes := twoNodes(t)
	deletions, switches := 0, 0
	for i := range 60 {
		target, from := fmt.Sprintf("target-%d", i), fmt.Sprintf("from-%d", i)
		plain := fmt.Sprintf("id: %s\nname: F\nplaybook: x\n", from)
		made, err := put(t, nodes[0], fmt.Sprintf("id: %s\nname: T\nplaybook: x\n", target), catalog.Seen{Absent: true})
		if err != nil {
			t.Fatal(err)
		}
		// Half of them are new agents, and half have been there without switching.
		seen := catalog.Seen{Absent: true}
		if i%2 == 0 {
			was, err := put(t, nodes[1], plain, seen)
			if err != nil {
				t.Fatal(err)
			}
			seen = is(was.Tag())
		}
		await.True(t, "the other node sees the target", func() bool { _, ok := nodes[1].Snapshot().Get(target); return ok })
		var both sync.WaitGroup
		var deleted, switched error
		both.Go(func() { deleted = nodes[0].Delete(t.Context(), target, is(made.Tag())) })
		both.Go(func() {
			_, switched = put(t, nodes[1], plain+"switch_to: ["+target+"]\n", seen)
		})
		both.Wait()
		_, used := errors.AsType[*catalog.UsedError](deleted)
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
			await.True(t, fmt.Sprintf("node %d agrees", n), func() bool {
				now := node.Snapshot()
				_, there := now.Get(target)
				e, ok := now.Get(from)
				return there == (switched == nil) && ok == (switched == nil || i%2 == 0) && (!ok || len(e.SwitchTo) == 1 == (switched == nil))
			})
		}
	}
	t.Logf("%d deletions and %d switches were first", deletions, switches)
}

// TestReloadedFiles: new files count for snapshots from then on, below the edits; what they replace is kept
// for sessions that began with it.
func TestReloadedFiles(t *testing.T) {
	c := newCatalog(openStore(t).Agents(), file("billing"), file("old"))
	edited, err := put(t, c, "id: sales\nname: S\nplaybook: x\nswitch_to: [billing]\n", catalog.Seen{Absent: true})
	if err != nil {
		t.Fatal(err)
	}
	before := c.Snapshot()
	was, _ := before.Get("billing")
	changed := file("billing")
	changed.Playbook = "Changed."
	files := []agent.Agent{changed, file("new"), file("sales")}
	if c.SameFiles(files) || !c.SameFiles([]agent.Agent{file("billing"), file("old")}) {
		t.Error("it cannot tell whether files have changed")
	}
	c.Reload(t.Context(), files)
	now := c.Snapshot()
	if e, _ := now.Get("billing"); e.Playbook != "Changed." || now.Version() == before.Version() {
		t.Errorf("billing is %+v", e)
	}
	if e, _ := now.Get("sales"); e.Source != catalog.SourceStore || e.Revision != edited.Revision {
		t.Errorf("sales is %+v", e)
	}
	if _, ok := now.Get("old"); ok {
		t.Error("an agent whose file has gone is still there")
	}
	if e, _ := before.Get("billing"); e.Playbook == "Changed." {
		t.Error("an older snapshot has changed")
	}
	if e := c.Pinned(t.Context(), "billing", was.Version); e == nil || e.Playbook != was.Playbook {
		t.Errorf("the version before is %+v", e)
	}
}
