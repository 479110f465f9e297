package cluster

import (
	"log/slog"
	"testing"

	"voicegw/internal/await"
	"voicegw/store"
)

// A session's record stays readable and says that the session runs, whatever of it is changed first.
func TestARecordKeepsItsState(t *testing.T) {
	kept, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	is, err := kept.Nodes().Join(t.Context(), store.Node{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := NewNode(NodeOptions{Directory: kept.Directory(), Nodes: kept.Nodes(), Checkpoints: kept.Checkpoints(), Logger: slog.New(slog.DiscardHandler)})
	p := n.Enter(store.SessionRecord{ID: "voice-1", User: "ada"})
	found := func() (r store.SessionRecord) {
		r, err = kept.Directory().Find(t.Context(), "voice-1")
		return r
	}
	await.True(t, "the session is entered", func() bool { return found().ID != "" })
	p.Update(func(r *store.SessionRecord) { r.TokenHashes = []string{"hash"} })
	await.True(t, "its token is written", func() bool { return len(found().TokenHashes) == 1 || err != nil })
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
	if r, err := kept.Directory().Find(t.Context(), "voice-2"); r.State != store.SessionOver {
		t.Errorf("the record of a session that was ended although it was given up is %+v, %v", r, err)
	}
}

// What is kept is in the store when Keep returns, however much was noted before. A session that was given
// up keeps nothing more.
func TestKeptIsDurable(t *testing.T) {
	kept, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if _, err := kept.Nodes().Join(t.Context(), store.Node{}, nil); err != nil {
		t.Fatal(err)
	}
	n := NewNode(NodeOptions{Directory: kept.Directory(), Nodes: kept.Nodes(), Checkpoints: kept.Checkpoints(), Logger: slog.New(slog.DiscardHandler)})
	defer n.Close()
	p := n.Enter(store.SessionRecord{ID: "voice-1", User: "ada"})
	for turn := range 20 {
		p.Note(store.Checkpoint{Turn: turn})
	}
	if err := p.Keep(t.Context(), store.Checkpoint{Turn: 20}); err != nil {
		t.Fatal(err)
	}
	if c, err := kept.Checkpoints().Load(t.Context(), "voice-1"); err != nil || c.Turn != 20 || c.Epoch != 1 {
		t.Errorf("the checkpoint is %+v, %v", c, err)
	}
	if err := p.Give(t.Context(), store.Checkpoint{Turn: 21}); err != nil {
		t.Fatal(err)
	}
	if err := p.Keep(t.Context(), store.Checkpoint{Turn: 22}); err == nil {
		t.Error("a session that was given up keeps more")
	}
}
