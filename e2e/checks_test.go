package e2e

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/checks"
	"voicegw/protocol"
)

// TestCheckedAnswer: the model says a refused word in its second sentence. The user neither hears nor reads the word,
// and then hears the replacement. A provider that supports it learns how much was heard.
func TestCheckedAnswer(t *testing.T) {
	t.Parallel()
	set, err := checks.New(800*time.Millisecond, slog.New(slog.DiscardHandler), &checks.Rule{Name: "rude", Outcome: checks.Replace,
		Say: "Let us stay polite.", Words: []string{"damn"}})
	if err != nil {
		t.Fatal(err)
	}
	overBothWires(t, setting{speed: 2, timed: true, checks: set, scenario: `
name: rude
rules:
  - when: {text: talk}
    do:
      - say: Well then, now you listen to me. You damn fool, I will not say anything else today.
  - when: {text: any}
    do: [say: Let us stay polite.]
`}, func(t *testing.T, provider string, st *stack, _ *stage) {
		c := st.start(t, 16000)
		c.say(&protocol.InputText{Text: "talk"})
		stopped := waitFor[*protocol.AnswerStopped](c)
		if stopped.Check != "rude" || stopped.Reason != "matched" || stopped.Outcome != "replace" {
			t.Errorf("the client got %+v", stopped)
		}
		if ended := waitFor[*protocol.TurnEnded](c); ended.Status != "interrupted" {
			t.Errorf("the turn ended %s", ended.Status)
		}
		first := stopped.ItemID
		c.say(&protocol.Playback{ItemID: first, PlayedMS: 0, Done: true})
		second := waitFor[*protocol.AudioEnd](c)
		if second.ItemID == first {
			t.Errorf("%s continues", first)
		}
		c.say(&protocol.Playback{ItemID: second.ItemID, PlayedMS: second.AudioMS, Done: true})
		if ended := waitFor[*protocol.TurnEnded](c); ended.Status != "completed" || ended.Turn != 2 {
			t.Errorf("turn %d ended %s", ended.Turn, ended.Status)
		}
		heard, said := map[string]int64{}, map[string]*protocol.Transcript{}
		item := ""
		for _, s := range c.seen {
			switch m := s.msg.(type) {
			case *protocol.AudioStart:
				item = m.ItemID
			case *protocol.Transcript:
				said[m.ID] = m
				if strings.Contains(m.Text, "dam") {
					t.Errorf("the client showed %q", m.Text)
				}
			}
			heard[item] += audio.MS(24000, s.bytes)
		}
		// The simulator needs more than a second for the words before the refused one.
		if ms := heard[first]; ms > 2600 {
			t.Errorf("%d ms of the refused answer were heard", ms)
		}
		if m := said[first]; m != nil && (!m.Final || !strings.HasPrefix("Well then, now you listen to me. You damn", m.Text)) {
			t.Errorf("the transcript of the refused answer is %+v", m)
		}
		if m := said[second.ItemID]; m == nil || m.Text != "Let us stay polite." || !m.Final {
			t.Errorf("the other transcript is %+v", m)
		}
		t.Logf("%s: %d ms were heard before the refused word", provider, heard[first])
	})
}
