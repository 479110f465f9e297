package session

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/transport"
)

// TestLatencyBeginsAtTheLastSound: the latency does not depend on how and when a model reports speech. The user speaks
// from 0.5 to 1.5 s, and the answer begins at 2.6 s.
func TestLatencyBeginsAtTheLastSound(t *testing.T) {
	deaf := transport.Capabilities{InterruptNotice: true}
	start := transport.SpeechStarted{AudioMS: 300}
	// reports are the model's events by the position of the audio.
	type reports map[time.Duration][]transport.Event
	for name, tt := range map[string]struct {
		caps transport.Capabilities
		says reports
	}{
		"no reports":         {deaf, nil},
		"late report":        {deaf, reports{700 * time.Millisecond: {start}, 2300 * time.Millisecond: {transport.SpeechStopped{AudioMS: 2300, EndMS: 2300}}}},
		"report without end": {deaf, reports{700 * time.Millisecond: {start}}},
		"after the answer":   {deaf, reports{700 * time.Millisecond: {start}, 2700 * time.Millisecond: {transport.SpeechStopped{AudioMS: 2700, EndMS: 2700}}}},
		"known silence":      {hearing, reports{700 * time.Millisecond: {start}, 2000 * time.Millisecond: {transport.SpeechStopped{AudioMS: 2000, EndMS: 1500}}}},
		"unknown silence":    {hearing, reports{700 * time.Millisecond: {start}, 2400 * time.Millisecond: {transport.SpeechStopped{AudioMS: 2400, EndMS: 2400}}}},
		"committed only":     {hearing, reports{700 * time.Millisecond: {start}, 2400 * time.Millisecond: {transport.InputCommitted{}}}},
		"report and commit":  {hearing, reports{700 * time.Millisecond: {start}, 2400 * time.Millisecond: {transport.SpeechStopped{AudioMS: 2400, EndMS: 2400}, transport.InputCommitted{}}}},
		"late start":         {deaf, reports{1700 * time.Millisecond: {transport.SpeechStarted{AudioMS: 1700, Late: true}}, 2300 * time.Millisecond: {transport.SpeechStopped{AudioMS: 2300, EndMS: 2300}}}},
		"late start, no end": {deaf, reports{1700 * time.Millisecond: {transport.SpeechStarted{AudioMS: 1700, Late: true}}}},
		"silence subtracted": {hearing, reports{700 * time.Millisecond: {start}, 2000 * time.Millisecond: {transport.SpeechStopped{AudioMS: 1500, EndMS: 1000}}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, tt.caps, nil)
				c, model := st.started()
				pcm := testutil.Silence(16000, 4*time.Second)
				copy(pcm[16000:], testutil.SpeechLike(16000, time.Second, 7))
				at := time.Duration(0)
				for frame := range slices.Chunk(pcm, 640) {
					c.speak(frame)
					pass(20 * time.Millisecond)
					at += 20 * time.Millisecond
					model.Emit(tt.says[at]...)
					if at == 2600*time.Millisecond {
						model.Emit(transport.ResponseStarted{ID: "r1"})
						model.EmitAudio("a1", make([]byte, 9600))
						model.Emit(transport.AudioDone{Item: "a1"})
					}
					if at == 3*time.Second {
						model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
					}
				}
				pass(time.Second)
				synctest.Wait()
				latency, ok := c.last(t, "turn.ended")["latency"].(map[string]any)
				if !ok {
					t.Fatalf("the turn has no latency: %v", c.last(t, "turn.ended"))
				}
				if total := latency["speech_end_to_first_audio_ms"].(float64); total < 1080 || total > 1180 {
					t.Errorf("the latency of an answer 1100 ms after the last sound is %v", latency)
				}
				if name == "report without end" || name == "late start, no end" || name == "committed only" {
					return
				}
				if end, ok := c.last(t, "speech.stopped")["end_ms"].(float64); !ok || end < 1420 || end > 1520 {
					t.Errorf("the last sound, at 1500 ms, was reported at %v", c.last(t, "speech.stopped"))
				}
			})
		})
	}
}

// TestUnknownEndHasNoLatency: speech whose end neither the gateway's detector nor the model knows has no latency,
// because any figure would be too small.
func TestUnknownEndHasNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, transport.Capabilities{InterruptNotice: true}, nil)
		c, model := st.started()
		at := time.Duration(0)
		for frame := range slices.Chunk(testutil.Silence(16000, 3*time.Second), 640) {
			c.speak(frame)
			pass(20 * time.Millisecond)
			switch at += 20 * time.Millisecond; at {
			case 500 * time.Millisecond:
				model.Emit(transport.SpeechStarted{AudioMS: 400})
			case 2 * time.Second:
				model.Emit(transport.SpeechStopped{AudioMS: 2000, EndMS: 2000}, transport.ResponseStarted{ID: "r1"})
				model.EmitAudio("a1", make([]byte, 9600))
				model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
			}
		}
		pass(time.Second)
		synctest.Wait()
		if ended := c.last(t, "turn.ended"); ended["latency"] != nil {
			t.Errorf("a turn without an end of speech has the latency %v", ended["latency"])
		}
		if stopped := c.last(t, "speech.stopped"); stopped["end_ms"] != nil {
			t.Errorf("an unknown last sound was reported: %v", stopped)
		}
	})
}
