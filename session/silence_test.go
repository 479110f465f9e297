package session

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/transport"
)

// frames returns the lengths of the audio that a connection got since the last call, in bytes.
func frames(model *fakeConn, from *int) (lengths []int) {
	all := model.Commands()
	for _, cmd := range all[*from:] {
		if in, ok := cmd.(*transport.AudioIn); ok {
			lengths = append(lengths, len(in.PCM))
		}
	}
	*from = len(all)
	return lengths
}

// TestSilenceIsJoined: long silence reaches the model in frames of 100 ms. Possible speech is never delayed: it and all
// earlier audio are sent at once. Nothing is lost or changed.
func TestSilenceIsJoined(t *testing.T) {
	const rate, frame = 16000, 640 // 20 ms
	quiet := testutil.Silence(rate, 3*time.Second)
	speech := testutil.SpeechLike(rate, time.Second, 7)
	onset := quieter(testutil.Noise(rate, -20, 100*time.Millisecond, 3), audio.FaintestSpeech+3) // a faint consonant
	hum := quieter(testutil.Noise(rate, -20, 6*time.Second, 5), -70)                             // a quiet room
	said := slices.Concat(quiet, onset, speech, quiet, hum, speech, quiet[:frame*52])
	for name, joins := range map[string]bool{"joined": true, "off": false, "the model has its own clock": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, with(announcing, func(c *transport.Capabilities) { c.AudioClock = name != "the model has its own clock" }),
					func(o *Options) { o.JoinSilence = name != "off" })
				c, model := st.started()
				detector := audio.NewDetector(audio.DetectorOptions{Rate: rate})
				sent, saved, from := 0, 0, 0
				for at := 0; at < len(said); at += frame {
					if at == len(quiet)+len(onset)+len(speech)+len(quiet)/2 {
						answers(c, model, "r1", "a1", "Yes.")
					}
					pass(20 * time.Millisecond)
					c.speak(said[at : at+frame])
					synctest.Wait()
					got := frames(model, &from)
					for _, n := range got {
						sent += n
					}
					saved += 1 - len(got)
					detector.Process(said[at : at+frame])
					waits := at + frame - sent
					faint := at >= len(quiet)+frame && at < len(quiet)+len(onset) // regardless of the detector
					if sound := faint || detector.QuietMS() < 20; sound && waits > 0 || waits > 4*frame || waits > 0 && !joins {
						t.Fatalf("after %d ms %d bytes wait; sound: %v", audio.MS(rate, at+frame), waits, sound)
					}
				}
				pass(pauseAfter + time.Second)
				if !bytes.Equal(model.Audio(), said) {
					t.Errorf("the model got %d bytes, which differ from the %d sent", len(model.Audio()), len(said))
				}
				if frames := len(said) / frame; joins != (saved > frames/3) {
					t.Errorf("%d frames less than the %d of the client", saved, frames)
				}
			})
		})
	}
}

// TestSilenceIsNotJoinedDuringAnAnswer: the model needs silence without delay to find the end of speech, and to be
// interrupted.
func TestSilenceIsNotJoinedDuringAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, with(announcing, func(c *transport.Capabilities) { c.AudioClock = true }), func(o *Options) { o.JoinSilence = true })
		c, model := st.started()
		from := 0
		silent := func(d time.Duration) string {
			for range d / (20 * time.Millisecond) {
				pass(20 * time.Millisecond)
				c.speak(make([]byte, 640))
			}
			synctest.Wait()
			return fmt.Sprint(len(frames(model, &from)))
		}
		got := silent(quietBefore*time.Millisecond + time.Second)
		model.Emit(transport.ResponseStarted{ID: "r1"})
		synctest.Wait()
		got += " " + silent(time.Second)
		speaks(model, "a1", 2*second)
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		got += " " + silent(time.Second) // it plays for two seconds
		pass(1900 * time.Millisecond)
		synctest.Wait()
		got += " " + silent(time.Second)
		got += " " + silent(60*time.Millisecond) // one frame completes a joined one, two are held
		before := len(model.Audio())
		pass(pauseAfter + time.Second) // the client stops sending
		synctest.Wait()
		if held := len(model.Audio()) - before; held != 2*640 {
			t.Errorf("a pause sends %d held bytes, want %d", held, 2*640)
		}
		if want := "85 50 50 10 1"; got != want {
			t.Errorf("frames sent in each part: %s, want %s", got, want)
		}
	})
}
