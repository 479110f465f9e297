package session

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/transport"
)

// TestTalkedOver: the client still plays a finished answer, so the model announces no interruption. Speech flushes the
// answer, by the client's reports and by the clock; a cough, a click or a knock does not.
func TestTalkedOver(t *testing.T) {
	speech := func(d time.Duration) []byte { return testutil.SpeechLike(16000, d, 7) }
	burst := func(d time.Duration) []byte { return testutil.Noise(16000, -18, d, 5) }
	cough := slices.Concat(burst(60*time.Millisecond), testutil.Noise(16000, -26, 150*time.Millisecond, 6), speech(120*time.Millisecond))
	gap := testutil.Silence(16000, 250*time.Millisecond)
	for name, c := range map[string]struct {
		sound   []byte
		reports bool
		flushed bool
	}{
		"speech by the clock":        {speech(time.Second), false, true},
		"speech by reports":          {speech(time.Second), true, true},
		"speech of half a second":    {speech(500 * time.Millisecond), false, true},
		"a short voiced noise":       {speech(250 * time.Millisecond), false, false},
		"a cough":                    {cough, true, false},
		"a fit of coughing":          {slices.Concat(cough, gap, cough, gap, cough), true, false},
		"a click":                    {burst(10 * time.Millisecond), false, false},
		"a second of a noisy street": {burst(time.Second), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, announcing, nil)
				client, model := st.started()
				client.stream(testutil.Silence(16000, 500*time.Millisecond))
				model.Emit(transport.Transcript{Item: "u1", Role: transport.RoleUser, Text: "hello"}, transport.ResponseStarted{ID: "r1"})
				speaks(model, "a1", 10*second)
				model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
				synctest.Wait()
				if c.reports { // the client plays late
					pass(9 * time.Second)
					client.say(`{"type":"playback","item_id":"a1","played_ms":1500}`)
				}
				client.stream(testutil.Silence(16000, 500*time.Millisecond))
				client.stream(c.sound)
				client.stream(testutil.Silence(16000, 700*time.Millisecond))
				synctest.Wait()
				if flushed := client.count("audio.flush") > 0; flushed != c.flushed {
					t.Errorf("flushed: %t, want %t\n%s", flushed, c.flushed, strings.Join(client.log(), "\n"))
				}
				if c.flushed {
					client.expect(t, "audio.flush a1 user_speech", "turn.ended interrupted")
				}
			})
		})
	}
}

// TestTalkedOverWithReports: also if a model that announces interruptions reports speech, the gateway's detector
// decides whether it is more than a cough.
func TestTalkedOverWithReports(t *testing.T) {
	for name, c := range map[string]struct {
		last    time.Duration
		flushed bool
	}{"speech": {time.Second, true}, "a cough": {200 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, announcing, nil)
				client, model := st.started()
				// The first report ends earlier than the detector's speech.
				model.Emit(transport.SpeechStarted{AudioMS: 1})
				client.stream(testutil.SpeechLike(16000, time.Second, 7))
				model.Emit(transport.SpeechStopped{AudioMS: 1000, EndMS: 1000}, transport.ResponseStarted{ID: "r1"})
				speaks(model, "a1", 10*second)
				model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
				client.stream(testutil.Silence(16000, 500*time.Millisecond))
				model.Emit(transport.SpeechStarted{AudioMS: 1500})
				synctest.Wait()
				client.stream(testutil.SpeechLike(16000, c.last, 8))
				client.stream(testutil.Silence(16000, 700*time.Millisecond))
				synctest.Wait()
				if flushed := client.count("audio.flush") > 0; flushed != c.flushed {
					t.Errorf("flushed: %t, want %t\n%s", flushed, c.flushed, strings.Join(client.log(), "\n"))
				}
			})
		})
	}
}

// TestPushToTalkFlushes: with push-to-talk only the button flushes.
func TestPushToTalkFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, announcing, nil)
		client := st.connect(strings.Replace(startText, "}", `,"turn_detection":"client"}`, 1))
		model := st.fake.Accept(t)
		model.Emit(transport.ResponseStarted{ID: "r1"})
		speaks(model, "a1", 10*second)
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		client.stream(testutil.SpeechLike(16000, 2*time.Second, 7))
		synctest.Wait()
		if n := client.count("audio.flush"); n != 0 {
			t.Fatalf("speech without the button flushed %d items", n)
		}
		client.say(`{"type":"input.activity","active":true}`)
		synctest.Wait()
		client.expect(t, "audio.flush a1 user_speech")
	})
}
