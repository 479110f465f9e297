package cluster

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/session"
	"voicegw/store"
)

// TestARecordKeepsItsState: after any change a session's record is readable and has the state running.
func TestARecordKeepsItsState(t *testing.T) {
	kept, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	is, err := kept.Nodes.Join(t.Context(), store.Node{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := NewNode(NodeOptions{Directory: kept.Directory, Nodes: kept.Nodes, Checkpoints: kept.Checkpoints, Logger: slog.New(slog.DiscardHandler)})
	p := n.Enter(store.SessionRecord{ID: "voice-1", User: "ada"})
	found := func() (r store.SessionRecord) {
		r, err = kept.Directory.Find(t.Context(), "voice-1")
		return r
	}
	testutil.WaitUntil(t, "the session is entered", func() bool { return found().ID != "" })
	p.Update(func(r *store.SessionRecord) { r.TokenHashes = []string{"hash"} })
	testutil.WaitUntil(t, "its token is written", func() bool { return len(found().TokenHashes) == 1 || err != nil })
	if r := found(); err != nil || r.State != store.SessionLive || r.Node != is.Node().ID || r.Epoch != 1 {
		t.Errorf("the record is %+v, %v", r, err)
	}
	p.Leave()
	if q := n.Enter(store.SessionRecord{ID: "voice-2", User: "ada"}); q.Give(t.Context(), store.Checkpoint{}) != nil {
		t.Error("the session cannot be given up")
	} else {
		q.End()
		q.Leave()
	}
	n.Close()
	if r := found(); r.State != store.SessionOver {
		t.Errorf("after its end the record is %+v, %v", r, err)
	}
	if r, err := kept.Directory.Find(t.Context(), "voice-2"); r.State != store.SessionOver {
		t.Errorf("the record of a session that was given up and then ended is %+v, %v", r, err)
	}
}

// TestKeptIsDurable: when Keep returns, its data is in the store, whatever was noted before. A session that was given up
// stores nothing more.
func TestKeptIsDurable(t *testing.T) {
	kept, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if _, err := kept.Nodes.Join(t.Context(), store.Node{}, nil); err != nil {
		t.Fatal(err)
	}
	n := NewNode(NodeOptions{Directory: kept.Directory, Nodes: kept.Nodes, Checkpoints: kept.Checkpoints, Logger: slog.New(slog.DiscardHandler)})
	defer n.Close()
	p := n.Enter(store.SessionRecord{ID: "voice-1", User: "ada"})
	for turn := range 20 {
		p.Note(store.Checkpoint{Turn: turn})
	}
	p.Note(store.Checkpoint{Turn: 20})
	if err := p.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err := kept.Checkpoints.Load(t.Context(), "voice-1"); err != nil || c.Turn != 20 || c.Epoch != 1 {
		t.Errorf("the checkpoint is %+v, %v", c, err)
	}
	if err := p.Give(t.Context(), store.Checkpoint{Turn: 21}); err != nil {
		t.Fatal(err)
	}
	p.Note(store.Checkpoint{Turn: 22})
	if err := p.Keep(t.Context()); err == nil {
		t.Error("a session that was given up stores more")
	}
}

// TestWritten: when the channel of Written is closed, all earlier changes are in the store: the first record, changes
// during its write, and later ones. While the store is unreachable it stays open, and after the end of the session no
// caller waits.
func TestWritten(t *testing.T) {
	direct := strings.TrimPrefix(startNATS(t).ClientURL(), "nats://")
	proxy, err := testutil.Listen("127.0.0.1:0", direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	n, _ := nodeAt(t, proxy.Addr())
	_, kept := nodeAt(t, direct)
	do := func(c testutil.Command) {
		t.Helper()
		if err := proxy.Do(c); err != nil {
			t.Fatal(err)
		}
	}
	written := func(what string, p session.Place, hashes int) {
		t.Helper()
		testutil.WaitClosed(t, what+" is written", p.Written())
		if r, err := kept.Directory.Find(t.Context(), "voice-1"); err != nil || len(r.TokenHashes) != hashes {
			t.Errorf("%s counts as written, and the record is %+v, %v", what, r, err)
		}
	}
	another := func(r *store.SessionRecord) { r.TokenHashes = append(slices.Clone(r.TokenHashes), "hash") }
	do(testutil.Command{Do: testutil.Freeze, Later: true})
	p := n.Enter(store.SessionRecord{ID: "voice-1", User: "ada", TokenHashes: []string{"hash"}})
	first := p.Written()
	p.Update(another)
	select {
	case <-first:
		t.Error("the first record counts as written while the store is unreachable")
	case <-p.Written():
		t.Error("a change counts as written while the store is unreachable")
	default:
	}
	do(testutil.Command{Do: testutil.Heal})
	testutil.WaitClosed(t, "the first record is written", first)
	written("what was changed meanwhile", p, 2)
	for i := range 20 {
		p.Update(another)
		written("a change", p, 3+i)
	}
	do(testutil.Command{Do: testutil.Freeze, Later: true})
	p.Update(another)
	waits := p.Written()
	p.Leave()
	testutil.WaitClosed(t, "no caller waits", waits)
	testutil.WaitClosed(t, "no caller waits later", p.Written())
	do(testutil.Command{Do: testutil.Heal})
}
