package e2e

import (
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// TestMicrophoneStops: a client that sends nothing after the last word, not even silence, gets an answer.
func TestMicrophoneStops(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, provider, setting{scenario: "name: short\nrules:\n  - when: {utterance: any}\n    do:\n      - say: Yes.\n", firstAudioMS: 10})
			c := st.start(t, 16000)
			for range 2 {
				c.speak(16000, testutil.Silence(16000, 500*time.Millisecond))
				c.speak(16000, testutil.SpeechLike(16000, time.Second, 5))
				waitFor[*protocol.SpeechStopped](c)
				if ended := waitFor[*protocol.TurnEnded](c); ended.Status != "completed" {
					t.Errorf("the turn ended %s", ended.Status)
				}
			}
		})
	}
}
