package session

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// TestSpeechWithoutEnd: if the model never reports the end of speech, the gateway ends it after 15 s without sound, and
// the session can become idle. Real speech may continue for minutes.
func TestSpeechWithoutEnd(t *testing.T) {
	for name, caps := range map[string]transport.Capabilities{"hearing": hearing, "announcing": announcing} {
		for _, muted := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newStage(t, caps, func(o *Options) { o.Policy = orchestrator.Policy{MaxIdle: time.Minute} })
					c, model := st.started()
					model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 0})
					c.stream(testutil.SpeechLike(16000, 2*time.Minute, 7))
					synctest.Wait()
					if c.count("speech.stopped") != 0 || c.count("error") != 0 {
						t.Fatalf("the gateway ended real speech: %q", c.log())
					}
					begun := time.Now()
					for c.count("speech.stopped") == 0 && time.Since(begun) < time.Minute {
						if muted {
							pass(time.Second)
						} else {
							c.stream(testutil.Silence(16000, time.Second))
						}
						synctest.Wait()
					}
					if waited := time.Since(begun); waited < 10*time.Second || waited > 17*time.Second {
						t.Errorf("speech ended %s after its last sound", waited)
					}
					if m := c.last(t, "error"); m["code"] != "no_answer" {
						t.Errorf("the client got %v", m)
					}
					pass(2 * time.Minute)
					synctest.Wait()
					if c.last(t, "session.ended")["reason"] != "idle" {
						t.Errorf("the session is not idle: %q", c.log())
					}
				})
			})
		}
	}
}
