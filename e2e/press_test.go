package e2e

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// TestShortPress: on both wires, a short press of the push-to-talk button and an invisible text begin no turn. The
// client gets an error, and the next turn is answered as usual.
func TestShortPress(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		for name, held := range map[string]time.Duration{"no audio": 0, "too short for a word": 150 * time.Millisecond} {
			t.Run(provider+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { shortPress(t, provider, held) })
			})
		}
	}
}

func shortPress(t *testing.T, provider string, held time.Duration) {
	st := newStack(t, provider, setting{timed: true, scenario: "name: short\nrules:\n  - when: {utterance: any}\n    do:\n      - say: Yes.\n", firstAudioMS: 10})
	c := st.connect(t)
	c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000, TurnDetection: protocol.TurnDetectionClient})
	waitFor[*protocol.SessionStarted](c)
	for range 2 {
		c.say(&protocol.InputActivity{Active: true})
		c.speak(16000, testutil.SpeechLike(16000, held, 5))
		c.say(&protocol.InputActivity{Active: false})
		c.refused("no_speech")
		<-time.After(time.Second) // time for a model that would answer a short press
	}
	c.say(&protocol.InputText{Text: "\u200b"})
	c.refused("invalid_message")
	c.say(&protocol.InputActivity{Active: true})
	c.speak(16000, testutil.SpeechLike(16000, time.Second, 5))
	c.say(&protocol.InputActivity{Active: false})
	if ended := waitFor[*protocol.TurnEnded](c); ended.Status != "completed" || ended.Turn != 1 {
		t.Errorf("turn %d ended %s; %s", ended.Turn, ended.Status, c.history())
	}
}
