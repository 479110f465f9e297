package e2e

import (
	"testing"
	"time"

	"voicegw/protocol"
	"voicegw/session"
)

// TestTranslation: a translation model answers spoken turns. The simulator refuses an agent's settings for it.
func TestTranslation(t *testing.T) {
	t.Parallel()
	st := newStack(t, "gemini", setting{model: "gemini-3.5-live-translate-preview", tools: newToolbox(t), limits: session.Limits{AudioAhead: time.Minute}, speed: 50, playback: 50, firstAudioMS: 10, scenario: `
name: interpreter
rules:
  - when: {utterance: any}
    heard: Good morning.
    do:
      - say: Buenos días.
`})
	c := st.start(t, 16000)
	for turn := range 2 {
		c.speak(16000, phrase(16000))
		heardTurn(c, turn+1, "Good morning.", "Buenos días.")
	}
	c.say(&protocol.End{})
	if code, errs := c.ended(); code != protocol.CloseDone || len(errs) != 0 {
		t.Errorf("closed with %d after %v", code, errs)
	}
}
