package session

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/orchestrator"
	"voicegw/store"
	"voicegw/transport"
	"voicegw/transport/transporttest"
)

// node makes a node of the shelf whose models have these capabilities.
func (f *shelf) stage(t *testing.T, id string, caps transport.Capabilities, change func(*Options)) *stage {
	t.Helper()
	return newStage(t, caps, func(o *Options) {
		o.Policy, o.Cluster = orchestrator.Policy{ResumeGrace: 30 * time.Second, Relink: true}, f.node(id)
		if change != nil {
			change(o)
		}
	})
}

// beginsAt begins a session on a node.
func beginsAt(t *testing.T, st *stage) (*returning, *transporttest.Conn) {
	t.Helper()
	r := &returning{t: t, st: st, seen: map[int64]int{}, leads: map[int64]bool{}, first: map[string]int64{}, audio: map[string][]byte{}, flushed: map[string]bool{}}
	c, model := st.started()
	r.conn = c
	synctest.Wait()
	r.read(-1)
	return r, model
}

// TestTakeover: the node of a session dies between turns. The client comes back through another node
// and goes on: the same session, the same conversation, told to the model again.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(r.conn, model, "r1", "a1", "In Vienna.")
		r.read(-1)
		id, before, old := r.id, r.highest, r.token
		f.kill("a")

		r.st = f.stage(t, "b", remembering, nil)
		r.comeBack(r.position())
		next := r.st.fake.Accept(t)
		synctest.Wait()
		r.read(-1)
		started := r.conn.last(t, "session.started")
		if started["session_id"] != id || started["resumed"] != true || started["snapshot"] != true || started["seq"].(float64) < float64(before+1000) || r.token == old {
			t.Errorf("the client was told %v", started)
		}
		if m := r.conn.last(t, "provider.reconnected"); m["reason"] != "taken_over" || m["how"] != "replayed" {
			t.Errorf("the client was told %v", m)
		}
		want := []transport.Past{transport.PastUser{Text: "where is Ada"}, transport.PastAssistant{Text: "In Vienna."}}
		setups := r.st.fake.Setups()
		if got := setups[len(setups)-1]; !slices.Equal(got.History, want) || got.Reanchor == "" {
			t.Errorf("the model was told %+v", got)
		}
		if rec := f.record(id); rec.Node != "b" || rec.Epoch != 2 || rec.State != store.SessionLive {
			t.Errorf("the record is %+v", rec)
		}
		r.conn.say(`{"type":"input.text","text":"and Bob"}`)
		synctest.Wait()
		answers(r.conn, next, "r1", "a1", "In Rome.")
		r.conn.expect(t, "session.started", "transcript", "turn.started", "audio.start l1001.a1", "turn.ended completed")
		if kept, m := f.checkpoint(t, id); len(kept.History) != 4 || m.State.Turn <= 1 || kept.Epoch != 2 {
			t.Errorf("the checkpoint is %+v, %+v", kept, m.State)
		}
	})
}

// TestTakeoverWhileSpeechIsOwed: a turn that was open is asked again on the new node, and its answer
// comes under the number that the client knows. An item that was never finished is ended.
func TestTakeoverWhileSpeechIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", speech(4800, 1))
		synctest.Wait()
		r.read(-1)
		f.kill("a")

		r.st = f.stage(t, "b", remembering, nil)
		r.comeBack(r.position())
		next := r.st.fake.Accept(t)
		if got := next.NextControl(t); got != (transport.Respond{}) {
			t.Errorf("the model was sent %#v", got)
		}
		synctest.Wait()
		if m := r.conn.last(t, "audio.end"); m["item_id"] != "a1" || m["audio_ms"] != 100.0 {
			t.Errorf("the client was told %v", m)
		}
		answers(r.conn, next, "r1", "a1", "In Vienna.")
		r.conn.expect(t, "session.started", "turn.started", "audio.end a1", "provider.reconnecting", "provider.reconnected", "audio.start l1001.a1", "turn.ended completed")
		if m := r.conn.last(t, "turn.ended"); m["turn"] != 1.0 {
			t.Errorf("the turn has become %v", m)
		}
	})
}
