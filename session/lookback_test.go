package session

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/transport"
)

// says sends speech in frames of 20 ms.
func (c *testClient) says(pcm []byte) {
	for frame := range slices.Chunk(pcm, 640) {
		c.speak(frame)
	}
	synctest.Wait()
}

// heardOf returns the audio that a connection received, and the text commands and button messages around it, in order.
func heardOf(model *fakeConn) (order string, pcm []byte) {
	for _, cmd := range model.Commands() {
		switch cmd := cmd.(type) {
		case *transport.AudioIn:
			pcm = append(pcm, cmd.PCM...)
			if n := len(order); n == 0 || order[n-1] != 'a' {
				order += "a"
			}
		case transport.ActivityStart:
			order += "("
		case transport.ActivityEnd:
			order += ")"
		default:
			order += fmt.Sprintf("%T", cmd)
		}
	}
	return order, pcm
}

// TestSpeechSurvivesALoss: the connection breaks during speech or before the answer. The next model hears the speech
// from its beginning, once, and then the newer audio. Answered speech is not replayed.
func TestSpeechSurvivesALoss(t *testing.T) {
	speech := append(testutil.Tone(16000, 440, -12, time.Second), testutil.Tone(16000, 570, -12, time.Second)...)
	half := len(speech) / 2
	for name, over := range map[string]bool{"while the user speaks": false, "before the answer": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, remembering, nil)
				c, model := st.started()
				c.says(speech)
				model.Emit(transport.SpeechStarted{Item: "u0", AudioMS: 10}, transport.SpeechStopped{Item: "u0", AudioMS: 2000, EndMS: 2000}, transport.InputCommitted{Item: "u0"})
				answers(c, model, "r0", "a0", "Yes.")
				c.says(make([]byte, 32000)) // a second of silence
				c.says(speech[:half])
				model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 3010})
				synctest.Wait()
				release := st.fake.StallConnect()
				if over {
					c.says(speech[half:])
					model.Emit(transport.SpeechStopped{Item: "u1", AudioMS: 5000, EndMS: 5000}, transport.InputCommitted{Item: "u1"})
					synctest.Wait()
				}
				model.FailRecv(broken())
				synctest.Wait()
				if !over {
					c.says(speech[half:])
				}
				release()
				next := st.fake.Accept(t)
				synctest.Wait()
				if order, got := heardOf(next); order != "a" || !bytes.HasSuffix(got, speech) || len(got) > len(speech)+640 {
					t.Errorf("the next connection got %s: %d bytes, want %d", order, len(got), len(speech))
				}
				next.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 10}, transport.SpeechStopped{Item: "u1", AudioMS: 2000, EndMS: 2000}, transport.InputCommitted{Item: "u1"})
				answers(c, next, "r1", "a1", "Yes.")
				if c.count("error") != 0 || c.count("turn.ended completed") != 2 {
					t.Errorf("the client got: %q", c.log())
				}
				if n := st.m.options().looked.Load(); n != 0 {
					t.Errorf("%d bytes are held after the answer", n)
				}
			})
		})
	}
}

// TestPushToTalkSurvivesALoss: with push-to-talk the next connection gets the same speech between the same two button
// messages.
func TestPushToTalkSurvivesALoss(t *testing.T) {
	speech := testutil.Tone(16000, 440, -12, time.Second)
	for name, lost := range map[string]int{"while the button is held": 0, "after its release": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, remembering, nil)
				c := st.connect(`{"type":"session.start","input_rate":16000,"output_rate":24000,"turn_detection":"client"}`)
				model := st.fake.Accept(t)
				synctest.Wait()
				c.says(speech) // before the button is pressed, so not for the model
				c.say(`{"type":"input.activity","active":true}`)
				synctest.Wait()
				c.says(speech)
				release := st.fake.StallConnect()
				for i := range 2 {
					if i == lost {
						model.FailRecv(broken())
						synctest.Wait()
					}
					if i == 0 {
						c.say(`{"type":"input.activity","active":false}`)
						synctest.Wait()
					}
				}
				release()
				next := st.fake.Accept(t)
				synctest.Wait()
				if order, got := heardOf(next); order != "(a)" || !bytes.Equal(got, speech) {
					t.Errorf("the next connection got %s with %d bytes, want %d", order, len(got), len(speech))
				}
				answers(c, next, "r1", "a1", "Yes.")
				if c.count("error") != 0 || c.count("turn.ended completed") != 1 {
					t.Errorf("the client got: %q", c.log())
				}
			})
		})
	}
}

// TestLookbackIsBounded: silence is not held, noise for a second, speech for eight, and all sessions together hold no
// more than the limit.
func TestLookbackIsBounded(t *testing.T) {
	all := new(atomic.Int64)
	l := &lookback{rate: 16000, all: all}
	hears := func(pcm []byte, d time.Duration) {
		for range d / (20 * time.Millisecond) {
			l.sent(pcm, false)
		}
	}
	kept := func(least, most time.Duration) {
		t.Helper()
		if got := time.Duration(l.ms()) * time.Millisecond; got < least || got > most || (got == 0) != (all.Load() == 0) {
			t.Errorf("%v are held in %d bytes of memory, want from %v to %v", got, all.Load(), least, most)
		}
	}
	noise, silence := testutil.Tone(16000, 300, -20, 20*time.Millisecond), make([]byte, 640)
	spare := 300 * time.Millisecond // a frame
	hears(silence, time.Minute)
	kept(0, 0)
	hears(noise, time.Minute)
	kept(maxLookOnset, maxLookOnset+spare)
	hears(silence, 2*maxLookOnset)
	kept(0, 0)
	hears(noise, time.Second/2)
	l.speechStarted(false)
	kept(time.Second/2, time.Second/2)
	hears(silence, time.Minute)
	kept(maxLookSpeech, maxLookSpeech+spare)
	l.answered() // an answer during speech is not an answer to that speech
	kept(maxLookSpeech, maxLookSpeech+spare)
	l.speechStopped()
	hears(silence, time.Minute)
	kept(maxLookSpeech, maxLookSpeech+spare)
	l.answered()
	kept(0, 0)

	all.Store(maxLookAll - 2*audio.FrameCap)
	l.speechStarted(false)
	hears(noise, time.Minute)
	if used, had := all.Load(), audio.Bytes(16000, time.Minute); used > maxLookAll || used < maxLookAll-3*audio.FrameCap {
		t.Errorf("of %d bytes, all sessions hold %d, want at most %d", had, used, maxLookAll)
	}
	l.forget()
	if all.Load() != maxLookAll-2*audio.FrameCap {
		t.Error("something is still held")
	}
}
