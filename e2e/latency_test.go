package e2e

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// speakInTime speaks in real time: a frame of 20 ms every 20 ms.
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

// TestTurnLatency: on each wire a spoken turn has a detection time and the provider's time, a typed one only the latter,
// and the parts add up to the total.
func TestTurnLatency(t *testing.T) {
	for name, tc := range map[string]struct {
		provider, model string
		// detected is the detection time of a spoken turn, took the model's time after it, both in ms and within a
		// frame.
		detected, took int64
	}{
		"openai": {"openai", "", 500, 150},
		// The gateway's detector notices the end before the provider's.
		"gemini, deaf": {"gemini", "gemini-2.5-flash-native-audio-preview-12-2025", 500, 450},
		// The model reports the end after 800 ms; the gateway's detector knows its position.
		"gemini, hearing": {"gemini", "gemini-3.1-flash-live-preview", 800, 150},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				st := newStack(t, tc.provider, setting{timed: true, model: tc.model, speed: 20, firstAudioMS: 150, playback: -1, scenario: `
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
				if want := (protocol.Latency{SpeechEndToFirstAudioMS: 150, ProviderMS: 150}); typed != want {
					t.Errorf("a typed turn waited %+v, want %+v", typed, want)
				}
				frame := frameTime.Milliseconds()
				if spoken.DetectionMS < tc.detected || spoken.DetectionMS > tc.detected+frame || spoken.ProviderMS < tc.took || spoken.ProviderMS > tc.took+frame || spoken.GatewayMS != 0 {
					t.Errorf("a spoken turn waited %+v, want %d ms for its end and %d for the model", spoken, tc.detected, tc.took)
				}
				if spoken.SpeechEndToFirstAudioMS != spoken.DetectionMS+spoken.ProviderMS+spoken.GatewayMS {
					t.Errorf("the parts do not add up to the total: %+v", spoken)
				}
			})
		})
	}
}

// waited takes a turn to its end and returns its latency.
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
