package session

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/orchestrator"
)

// TestNetworkOutage: after an outage without a broken connection the client sends its recording at once. The model
// hears all of it, although it reads slowly; more than that is refused.
func TestNetworkOutage(t *testing.T) {
	for _, hole := range []time.Duration{3 * time.Second, 11 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, hearing, func(o *Options) { o.Policy = orchestrator.Policy{ResumeGrace: 30 * time.Second} })
			c, model := st.started()
			for range 50 {
				c.speak(speech(640, 1))
				pass(20 * time.Millisecond)
			}
			pass(hole)
			release := model.StallSend()
			recorded := int(hole / (20 * time.Millisecond))
			for i := range recorded {
				c.speak(speech(640, byte(i)))
			}
			synctest.Wait()
			release()
			synctest.Wait()
			if got, want := len(model.Audio()), 16000*2+recorded*640; got != want || c.count("error") != 0 {
				t.Errorf("after %v the model has heard %d bytes of %d, and the client got %q", hole, got, want, c.log())
			}
			for range 1000 {
				c.speak(speech(640, 9))
			}
			synctest.Wait()
			if c.count("error") == 0 {
				t.Error("another 20 s of audio were accepted at once")
			}
		})
	}
}
