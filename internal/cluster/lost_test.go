package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/session"
	"voicegw/store"
)

// TestLostSessions: the sessions of a dead node, and those that were given up, are lost for each other node, and one of
// them can own each. Sessions that a node has run itself are distinguished: only their records remain.
func TestLostSessions(t *testing.T) {
	direct := strings.TrimPrefix(startNATS(t).ClientURL(), "nats://")
	gone, kept := nodeAt(t, direct)
	one, stays := nodeAt(t, direct)
	two, _ := nodeAt(t, direct)
	for n, id := range map[*Node]string{gone: "voice-1", one: "voice-2"} {
		p := n.Enter(store.SessionRecord{ID: id, User: "ada"})
		testutil.WaitClosed(t, "the session is entered", p.Written())
		p.Note(store.Checkpoint{At: time.Now(), Turn: 3})
		if err := p.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	own, err := stays.Directory.Find(t.Context(), "voice-2")
	if err != nil {
		t.Fatal(err)
	}
	one.o.Self = func() string { return own.Node }
	if lost, err := two.Lost(t.Context()); err != nil || len(lost) != 0 {
		t.Fatalf("while all nodes run: %+v, %v", lost, err)
	}
	gone.Close()
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	var found session.Lost
	testutil.WaitUntil(t, "the session is lost", func() bool {
		lost, err := two.Lost(t.Context())
		if err != nil || len(lost) != 1 || lost[0].Ended || lost[0].Record.ID != "voice-1" {
			return false
		}
		found = lost[0]
		return true
	})
	lost, err := one.Lost(t.Context())
	if err != nil || len(lost) != 2 || lost[0].Ended == lost[1].Ended {
		t.Errorf("the node that has a session itself finds %+v, %v", lost, err)
	}
	taken, err := one.Adopt(t.Context(), found.Record)
	if err != nil || taken.Record.Epoch != 2 || !taken.Record.Lost || taken.Checkpoint.Turn != 3 {
		t.Errorf("it is owned as %+v, %v", taken, err)
	}
	if _, err := two.Adopt(t.Context(), found.Record); !errors.Is(err, session.ErrElsewhere) {
		t.Errorf("the second owner: %v", err)
	}
}
