package session

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// pauses counts the pauses reported to the model.
func pauses(model *fakeConn) (n int) {
	for _, cmd := range model.Commands() {
		if _, ok := cmd.(transport.AudioPause); ok {
			n++
		}
	}
	return n
}

// stream sends frames of 20 ms in real time.
func (c *testClient) stream(pcm []byte) {
	for frame := range slices.Chunk(pcm, 640) {
		c.speak(frame)
		pass(20 * time.Millisecond)
	}
}

// TestPause: a client that stops sending audio has paused, once each time; a client delayed for less has not, nor has
// one that never sent audio.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		for _, tc := range []struct {
			audio time.Duration
			hole  time.Duration
			want  int
		}{
			{0, 10 * time.Second, 0},
			{time.Second, 1900 * time.Millisecond, 0},
			{5 * time.Second, 2100 * time.Millisecond, 1},
			{0, time.Minute, 1},
			{20 * time.Millisecond, 2100 * time.Millisecond, 2},
		} {
			c.stream(testutil.Silence(16000, tc.audio))
			pass(tc.hole)
			synctest.Wait()
			if n := pauses(model); n != tc.want {
				t.Fatalf("after %s of audio and %s of none: %d pauses, want %d", tc.audio, tc.hole, n, tc.want)
			}
		}
	})
}

// TestPushToTalkHasNoPauses: with push-to-talk the client reports the end of a phrase.
func TestPushToTalkHasNoPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c := st.connect(strings.Replace(startText, "}", `,"turn_detection":"client"}`, 1))
		model := st.fake.Accept(t)
		c.stream(testutil.Silence(16000, time.Second))
		pass(time.Minute)
		synctest.Wait()
		if n := pauses(model); n != 0 {
			t.Errorf("%d pauses", n)
		}
	})
}

// TestPauseEndsSpeech: the gateway's own detector does not wait for silence after the audio stops: the turn begins, and
// later speech has times on the same clock.
func TestPauseEndsSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, transport.Capabilities{InterruptNotice: true}, nil)
		c, model := st.started()
		c.stream(testutil.Silence(16000, time.Second))
		c.stream(testutil.SpeechLike(16000, time.Second, 7))
		pass(2100 * time.Millisecond)
		synctest.Wait()
		c.expect(t, "speech.started", "speech.stopped", "turn.started")
		if at := c.last(t, "speech.stopped")["audio_ms"].(float64); at != 2000 {
			t.Errorf("speech that was cut off at 2000 ms was reported to end at %v ms", at)
		}
		model.Emit(transport.ResponseStarted{ID: "r1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		c.stream(testutil.Silence(16000, time.Second))
		c.stream(testutil.SpeechLike(16000, time.Second, 7))
		synctest.Wait()
		if at := c.last(t, "speech.started")["audio_ms"].(float64); at < 2500 || at > 3100 {
			t.Errorf("speech from 3000 ms was reported at %v ms", at)
		}
	})
}

// TestPausedUserIsIdle: a user who stops sending in the middle of a word does not keep the session active.
func TestPausedUserIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, transport.Capabilities{InterruptNotice: true}, func(o *Options) {
			o.Policy = orchestrator.Policy{MaxIdle: time.Minute}
		})
		c, _ := st.started()
		c.stream(testutil.SpeechLike(16000, time.Second, 7))
		pass(3 * time.Minute)
		synctest.Wait()
		c.expect(t, "speech.started", "speech.stopped", "session.ended idle")
	})
}
