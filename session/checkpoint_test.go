package session

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/orchestrator"
	"voicegw/transport"
)

// TestCheckpoints: a checkpoint is stored when the user's words are known, and again when they are answered. A session
// that ended has no checkpoint.
func TestCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		st := newStage(t, resuming, func(o *Options) {
			o.Policy, o.Cluster = orchestrator.Policy{ResumeGrace: 30 * time.Second}, f.node("a")
		})
		c, model := st.started()
		synctest.Wait()
		id := c.last(t, "session.started")["session_id"].(string)
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		kept, r := f.checkpoint(t, id)
		if o := r.State.Open; o == nil || o.Number != 1 || !o.Worded || o.Spoke || len(kept.History) != 1 || kept.History[0].Text != "where is Ada" || kept.Epoch != 1 {
			t.Errorf("while the turn is open: %+v, %+v", kept, r)
		}
		if len(r.Transcripts) != 1 || r.Transcripts[0].Text != "where is Ada" || r.Mark == "" {
			t.Errorf("remembered: %+v", r)
		}
		answers(c, model, "r1", "a1", "In Vienna.")
		model.Emit(transport.ResumeHandle{Handle: "h1", Resumable: true})
		synctest.Wait()
		kept, r = f.checkpoint(t, id)
		if r.State.Open != nil || r.State.Turn != 1 || kept.Turn != 1 || len(kept.History) != 2 || kept.History[1].Text != "In Vienna." {
			t.Errorf("after the answer: %+v, %+v", kept, r)
		}
		if kept.Handle != "h1" || !kept.HandleFresh || kept.Seq == 0 {
			t.Errorf("after the handle: %+v", kept)
		}
		if rec := f.record(id); len(rec.TokenHashes) != 2 || rec.State != "live" || rec.InputRate != 16000 || rec.OutputRate != 24000 {
			t.Errorf("the record is %+v", rec)
		}
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		pass(time.Second)
		if rec := f.record(id); rec.ID != "" || len(f.kept) != 0 {
			t.Errorf("after the end there is %+v", rec)
		}
	})
}
