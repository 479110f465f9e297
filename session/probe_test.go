package session

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/transport"
)

// TestProbes: a client without playback reports that answers pings gets probes, and little of a long answer is held for
// it after it has begun to play.
func TestProbes(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, announcing, func(o *Options) { o.Policy.ResumeGrace = time.Minute })
			a := st.admit(someone)
			c := newTestClient()
			c.answers = answers
			c.say(startText)
			st.m.Start(a, c)
			model := st.fake.Accept(t)
			model.Emit(transport.ResponseStarted{ID: "r1"})
			for range 40 {
				model.EmitAudio("a1", make([]byte, second/10))
				pass(100 * time.Millisecond)
			}
			synctest.Wait()
			kept := peek(st.m.options().budget, "keptChunks.v") * 8 << 10
			if answers && kept > 2*second || !answers && kept < 4*second {
				t.Errorf("the client answers probes: %v; %d bytes are held", answers, kept)
			}
		})
	}
}
