package e2e

import (
	"slices"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// speakInTime speaks as a microphone does: a frame of 20 ms every 20 ms.
func (c *client) speakInTime(rate int, pcm []byte) {
	c.t.Helper()
	every := time.NewTicker(frameTime)
	defer every.Stop()
	for frame := range slices.Chunk(pcm, audio.Bytes(rate, frameTime)) {
		<-every.C
		if err := c.conn.WriteAudio(frame); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestWhatTheUserWaitsFor: over each wire a spoken turn has its wait for the end of the
// speech apart from the provider's time, a typed one has none, and the parts are the
// whole.
func TestWhatTheUserWaitsFor(t *testing.T) {
	for name, tc := range map[string]struct {
		provider, model string
		// detected is the least that a spoken turn waits for its end to be known.
		detected int64
	}{
		"openai":       {"openai", "", 200},
		"gemini, deaf": {"gemini", "gemini-2.5-flash-native-audio-preview-12-2025", 200},
		// It says when it has noticed the end, and not where the end was.
		"gemini, hearing": {"gemini", "gemini-3.1-flash-live-preview", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, tc.provider, setting{model: tc.model, speed: 20, firstAudioMS: 150, playback: -1, scenario: `
rules:
  - when: {utterance: any}
    do: [{say: Yes.}]
  - when: {text: any}
    do: [{say: Yes.}]
`})
			c := st.start(t, 16000)
			c.speakInTime(16000, phrase(16000))
			spoken := c.waited()
			c.say(&protocol.InputText{Text: "and now?"})
			typed := c.waited()
			if spoken.DetectionMS < tc.detected || spoken.DetectionMS > 1500 || typed.DetectionMS != 0 {
				t.Errorf("the end of speech was known after %d ms, and of a text after %d", spoken.DetectionMS, typed.DetectionMS)
			}
			for _, l := range []protocol.Latency{spoken, typed} {
				if l.SpeechEndToFirstAudioMS != l.DetectionMS+l.ProviderMS+l.GatewayMS || l.SpeechEndToFirstAudioMS < 150 || l.GatewayMS < 0 {
					t.Errorf("the parts are not the whole: %+v", l)
				}
				// The provider takes 150 ms from where it has noticed the end, which may be
				// later than where the gateway's own ear has.
				if l.ProviderMS < 100 || l.ProviderMS > 1000 {
					t.Errorf("the provider took %d ms", l.ProviderMS)
				}
			}
		})
	}
}

// waited lets a turn be heard, and returns how long its user has waited.
func (c *client) waited() protocol.Latency {
	c.t.Helper()
	for {
		switch m := c.next().msg.(type) {
		case *protocol.TurnEnded:
			if m.Latency == nil || m.Status != "completed" {
				c.t.Fatalf("the turn has ended as %+v", m)
			}
			return *m.Latency
		}
	}
}
