package gemini

import (
	"fmt"
	"testing"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

func newTestConversation() *conversation {
	return &conversation{origin: &origin{model: "m", ids: wire.NewIDs(1)}, dialogue: scenario.Default().NewDialogue(1)}
}

// TestASnapshotIsImmutable: a handle leads to the state at its issue, whatever the conversation does later, even if it
// drops its oldest lines. Two sessions that continue from one handle do not see each other's lines.
func TestASnapshotIsImmutable(t *testing.T) {
	c := newTestConversation()
	c.remember("user", "first")
	c.unanswered = append(c.unanswered, "first")
	c.history = append(make([]scenario.Memory, 0, 8), c.history...) // with capacity to append without a copy
	snap := c.snapshot()
	for i := range 3 * maxHistory {
		c.remember("user", fmt.Sprint("later ", i))
	}
	c.unanswered = append(c.unanswered[:0], "later")
	var resumed []*conversation
	for i := range 2 {
		r := snap.resumed()
		if len(r.history) != 1 || r.history[0].Text != "first" || len(r.unanswered) != 1 || r.unanswered[0] != "first" {
			t.Errorf("resumption %d knows %v and has not answered %v", i+1, r.history, r.unanswered)
		}
		r.remember("user", fmt.Sprint("of resumption ", i+1))
		r.unanswered[0] = "of another session"
		resumed = append(resumed, r)
	}
	for i, r := range resumed {
		if got, want := r.history[1].Text, fmt.Sprint("of resumption ", i+1); got != want {
			t.Errorf("resumption %d remembers the line %s", i+1, got)
		}
	}
}

// TestASnapshotKnowsItsCalls: a call has its state at the handle's issue, open or finished; later calls are unknown.
func TestASnapshotKnowsItsCalls(t *testing.T) {
	c := newTestConversation()
	c.calls.add(&call{id: "over", name: "a", state: callCancelled})
	c.calls.add(&call{id: "open", name: "b"})
	snap := c.snapshot()
	c.calls.all[1].state = callAnswered
	c.calls.add(&call{id: "later", name: "c"})

	r := snap.resumed()
	states := map[string]callState{"over": callAnswered, "open": callOpen}
	for id, want := range states {
		if k := r.calls.match(functionResponse{ID: id}, false); k == nil || k.state != want {
			t.Errorf("%s is %+v, want state %d", id, k, want)
		}
	}
	if k := r.calls.match(functionResponse{ID: "later", Name: "b"}, false); k != nil {
		t.Errorf("a later call is %+v", k)
	}
	if r.calls.all[1] == c.calls.all[1] {
		t.Error("the resumed session shares the call's state with the one before")
	}
	// Ids of the provider's form count as foreign only in sessions that were not resumed.
	foreign := functionResponse{ID: "fc_1234567890123", Name: "b"}
	if r.calls.match(foreign, false) != nil || r.calls.match(foreign, true) == nil {
		t.Error("an id of another session is handled wrongly")
	}
}
