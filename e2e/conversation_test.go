package e2e

import (
	"strings"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// phrase is a second and a half of speech with the silence that ends it.
func phrase(rate int) []byte {
	pcm := testutil.SpeechLike(rate, 1500*time.Millisecond, 11)
	return append(pcm, testutil.Silence(rate, 1200*time.Millisecond)...)
}

// TestSpokenAndTypedTurns: a conversation on each provider's wire, with a client at another rate than the model's.
func TestSpokenAndTypedTurns(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		for _, rate := range []int{16000, 48000} {
			t.Run(provider, func(t *testing.T) {
				t.Parallel()
				st := newStack(t, provider, setting{speed: 20, firstAudioMS: 10, scenario: `
name: two turns
rules:
  - when: {utterance: 1}
    heard: What is the weather like?
    do:
      - say: It is fine today.
  - when: {text: any}
    do:
      - say: You typed it.
`})
				c := st.start(t, rate)
				c.speak(rate, phrase(rate))
				heardTurn(c, 1, "What is the weather like?", "It is fine today.")
				c.say(&protocol.InputText{Text: "and tomorrow?", ID: "mine"})
				heardTurn(c, 2, "and tomorrow?", "You typed it.")
				c.say(&protocol.End{})
				if code, errs := c.ended(); code != protocol.CloseDone || len(errs) != 0 {
					t.Errorf("closed with %d after %v", code, errs)
				}
				st.manager.Close()
				if !strings.Contains(st.log.String(), `"msg":"session ended"`) {
					t.Error("the end of the session is not in the log")
				}
				if strings.Contains(st.log.String(), "weather") {
					t.Error("a transcript is in the log")
				}
			})
		}
	}
}

// heardTurn takes a turn with instant playback and checks the transcripts. The user's may arrive after the turn's end.
func heardTurn(c *client, turn int, user, assistant string) {
	c.t.Helper()
	texts := map[string]string{}
	var item string
	var bytes int
	for ended, final := false, false; !ended || !final; {
		h := c.next()
		bytes += h.bytes
		switch m := h.msg.(type) {
		case *protocol.Transcript:
			texts[m.Role] = strings.TrimSpace(m.Text)
			final = final || m.Role == "user" && m.Final && texts["user"] == user
			if m.Turn != turn {
				c.t.Errorf("the transcript %q belongs to turn %d, want %d", m.Text, m.Turn, turn)
			}
		case *protocol.AudioStart:
			item, bytes = m.ItemID, 0
		case *protocol.AudioEnd:
			if ms := audio.MS(24000, bytes); m.ItemID != item || m.AudioMS != ms || ms < 300 {
				c.t.Errorf("%s ended with %d ms; %d ms of %s arrived", m.ItemID, m.AudioMS, ms, item)
			}
			c.say(&protocol.Playback{ItemID: item, PlayedMS: m.AudioMS, Done: true})
		case *protocol.Error:
			c.t.Fatalf("the gateway reported %s: %s", m.Code, m.Message)
		case *protocol.TurnEnded:
			ended = true
			checkTurn(c.t, m, turn)
			if texts["assistant"] != assistant {
				c.t.Errorf("the model's transcript is %q, want %q", texts["assistant"], assistant)
			}
		}
		if h.err != nil {
			c.t.Fatalf("the connection ended: %v", h.err)
		}
	}
}

func checkTurn(t testing.TB, m *protocol.TurnEnded, turn int) {
	t.Helper()
	if m.Turn != turn || m.Status != "completed" {
		t.Errorf("turn %d ended %s, want %d completed", m.Turn, m.Status, turn)
	}
	if m.Latency == nil || m.Usage.OutputTokens == 0 || m.Usage.Output.Audio == 0 {
		t.Errorf("turn %d ended with usage %+v and latency %+v", turn, m.Usage, m.Latency)
	}
}
