package e2e

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// longAnswer makes the model talk for a while.
const longAnswer = `
name: long
rules:
  - when: {text: any}
    do:
      - say: >-
          I will now talk for quite a long time, so that there is something to interrupt, and I will
          not stop before I am told to, because that is what this test is about, and nothing else.
  - when: {utterance: any}
    do:
      - say: Yes?
`

// TestInterruption: speech stops the answer. After audio.flush no byte of the item arrives, and the model learns how
// much the client heard.
func TestInterruption(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			// The model generates in real time, so most of the answer is unsent.
			st := newStack(t, provider, setting{scenario: longAnswer, firstAudioMS: 10, speed: 1})
			c := st.start(t, 16000)
			c.say(&protocol.InputText{Text: "talk"})
			item := waitFor[*protocol.AudioStart](c).ItemID
			var heard int64
			for heard < 500 {
				heard += audio.MS(24000, c.next().bytes)
			}
			c.say(&protocol.Playback{ItemID: item, PlayedMS: heard - 100})
			c.speak(16000, testutil.SpeechLike(16000, time.Second, 5))
			flush := waitFor[*protocol.AudioFlush](c)
			if flush.ItemID != item || flush.Reason != "user_speech" {
				t.Errorf("%s was flushed because of %s", flush.ItemID, flush.Reason)
			}
			played := heard - 40
			c.say(&protocol.Playback{ItemID: item, PlayedMS: played, Done: true})
			if provider == "openai" {
				m := st.tap.wait(t, "conversation.item.truncate", func(m map[string]any) bool { return m["type"] == "conversation.item.truncate" })
				if at := int64(m["audio_end_ms"].(float64)); at < played-50 || at > played+50 {
					t.Errorf("the model got %d ms; the client had reported %d", at, played)
				}
			}
			if ended := waitFor[*protocol.TurnEnded](c); ended.Status != "interrupted" {
				t.Errorf("the turn ended %s", ended.Status)
			}
			c.speak(16000, testutil.Silence(16000, 1500*time.Millisecond))
			next := waitFor[*protocol.AudioStart](c)
			if next.ItemID == item {
				t.Errorf("%s speaks again after its flush", item)
			}
			nothingAfterFlush(t, c.seen, item)
		})
	}
}

// TestTalkedOver: the user speaks while the client plays an answer that the model has finished; Gemini then announces
// no interruption. On every wire the rest is flushed, with or without playback reports, and the model answers the user.
func TestTalkedOver(t *testing.T) {
	for _, wire := range []struct{ provider, model string }{
		{"openai", ""},
		{"gemini", "gemini-2.5-flash-native-audio-preview-12-2025"},
		{"gemini", "gemini-3.1-flash-live-preview"},
		{"gemini", "gemini-3.8-live"},
	} {
		for name, reports := range map[string]bool{"with reports": true, "without reports": false} {
			t.Run(wire.provider+" "+wire.model+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					st := newStack(t, wire.provider, setting{timed: true, model: wire.model, scenario: longAnswer, firstAudioMS: 10, speed: 50, playback: -1})
					c := st.start(t, 16000)
					c.say(&protocol.InputText{Text: "talk"})
					item := waitFor[*protocol.AudioEnd](c).ItemID
					<-time.After(time.Second) // the model has completed the turn
					if reports {
						c.say(&protocol.Playback{ItemID: item, PlayedMS: 700})
					}
					c.speakInTime(16000, question(t))
					if flush := waitFor[*protocol.AudioFlush](c); flush.ItemID != item || flush.Reason != "user_speech" {
						t.Errorf("%s was flushed because of %s", flush.ItemID, flush.Reason)
					}
					if reports {
						c.say(&protocol.Playback{ItemID: item, PlayedMS: 1200, Done: true})
					}
					if ended := waitFor[*protocol.TurnEnded](c); ended.Status != "interrupted" {
						t.Errorf("the turn ended %s", ended.Status)
					}
					if next := waitFor[*protocol.AudioStart](c); next.ItemID == item {
						t.Errorf("%s speaks again after its flush", item)
					}
					nothingAfterFlush(t, c.seen, item)
				})
			})
		}
	}
}

// question is a recorded question at 16 kHz, or a similar sound without the recordings, followed by silence.
func question(t *testing.T) []byte {
	t.Helper()
	pcm := testutil.SpeechLike(16000, 1500*time.Millisecond, 5)
	if clip, err := audio.ReadFile("../../shared/audio/azure_whats_the_weather_24k.wav"); err == nil {
		resampler, err := audio.NewResampler(clip.Rate, 16000)
		if err != nil {
			t.Fatal(err)
		}
		pcm = resampler.Process(nil, clip.PCM)
	}
	return slices.Concat(pcm, testutil.Silence(16000, 1500*time.Millisecond))
}

// nothingAfterFlush: between the flush of item and the next audio.start no audio arrived, and item did not end.
func nothingAfterFlush(t *testing.T, seen []happening, item string) {
	t.Helper()
	i := slices.IndexFunc(seen, func(h happening) bool { f, ok := h.msg.(*protocol.AudioFlush); return ok && f.ItemID == item })
	for _, h := range seen[i+1:] {
		if h.bytes > 0 {
			t.Fatalf("%d bytes arrived after the flush of %s", h.bytes, item)
		}
		switch m := h.msg.(type) {
		case *protocol.AudioEnd:
			if m.ItemID == item {
				t.Fatalf("%s was ended after its flush", item)
			}
		case *protocol.AudioStart:
			return
		}
	}
}

// TestStopButton: the interrupt message silences a model at once, even one that cannot be stopped.
func TestStopButton(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, provider, setting{scenario: longAnswer, firstAudioMS: 10, speed: 1})
			c := st.start(t, 16000)
			c.say(&protocol.InputText{Text: "talk"})
			item := waitFor[*protocol.AudioStart](c).ItemID
			for c.next().bytes == 0 {
			}
			c.say(&protocol.Interrupt{})
			if flush := waitFor[*protocol.AudioFlush](c); flush.Reason != "user_stop" {
				t.Errorf("flushed because of %s", flush.Reason)
			}
			c.say(&protocol.InputText{Text: "again"})
			if next := waitFor[*protocol.AudioStart](c); next.ItemID == item {
				t.Error("the stopped item speaks again")
			}
			nothingAfterFlush(t, c.seen, item)
		})
	}
}
