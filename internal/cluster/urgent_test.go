package cluster

import (
	"fmt"
	"slices"
	"testing"

	"voicegw/store"
)

// busyNode is a node with busy writers, so that every record waits.
func busyNode() *Node {
	n := &Node{}
	n.writes.writers = mostWriters
	return n
}

// TestUrgentRecordsAreFirst: a record that a client waits for, and that of a new session, are written before the others,
// which do not wait for ever.
func TestUrgentRecordsAreFirst(t *testing.T) {
	n := busyNode()
	names := map[*place]string{}
	running := func(i int) *place { // a session that has its record
		p := &place{n: n, owned: &store.Owned{}, settled: true}
		names[p] = fmt.Sprint("running ", i)
		return p
	}
	away := func(r *store.SessionRecord) { r.State = store.SessionDetached }
	for i := range 3 {
		running(i).Update(away)
	}
	back := running(3)
	back.Update(away)
	back.Update(away) // it waits once
	back.Written()
	back.Written()
	for i := range 5 {
		p := n.newPlace(store.SessionRecord{ID: "new"}, nil)
		names[p] = fmt.Sprint("new ", i)
		p.mu.Lock()
		p.soon()
		p.mu.Unlock()
	}
	var got []string
	for p := n.writes.dequeue(); p != nil; p = n.writes.dequeue() {
		got = append(got, names[p])
	}
	want := []string{"running 3", "new 0", "new 1", "running 0", "new 2", "new 3", "new 4", "running 1", "running 2"}
	if !slices.Equal(got, want) {
		t.Errorf("they are written in the order %q, want %q", got, want)
	}
}

// TestAPlaceIsQueuedOnce: a caller that begins to wait for a record that is being written, or is already first, does not
// queue it again.
func TestAPlaceIsQueuedOnce(t *testing.T) {
	n := busyNode()
	p := &place{n: n, owned: &store.Owned{}, settled: true}
	p.Update(func(*store.SessionRecord) {})
	if got := n.writes.dequeue(); got != p {
		t.Fatalf("%p is to be written, want %p", got, p)
	}
	p.Written()
	if len(n.writes.urgent)+len(n.writes.others) != 0 {
		t.Error("a place that a writer has was queued again")
	}
	if n.writes.again(p, p.awaited()); len(n.writes.urgent) != 1 {
		t.Error("the next write of a place with a waiting caller is not urgent")
	}
	p.Written()
	if len(n.writes.urgent)+len(n.writes.others) != 1 {
		t.Error("a place is queued twice")
	}
}
