package e2e

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// TestLiveChecked: the text model behind a Live voice never gets a stopped word: neither as the voice's nor, after the voice was
// stopped with its answer, as its own.
func TestLiveChecked(t *testing.T) {
	rules := &checks.Rule{Name: "rude", Outcome: checks.Replace, Say: "Let us stay polite.", Words: []string{"damn"}}
	set, err := checks.New(time.Second, slog.New(slog.DiscardHandler), rules)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		tools := newStageOn(t, nil)
		given := setting{timed: true, checks: set, tools: tools.box, scenario: `
name: rude
rules:
  - when: {text: talk}
    do: [say: Well then. You damn fool.]
  - when: {text: '^look$'}
    do:
      - call: {tool: lookup, args: {query: Ada}}
      - then: [{say: Found the damn fool.}]
  - when: {text: any}
    do: [say: Let us stay polite.]
`}
		var mu sync.Mutex
		var prompted []string
		model := newSim(t, given)
		given.provider = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				prompted = append(prompted, string(body))
				mu.Unlock()
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			model.ServeHTTP(w, r)
		})
		c := newStack(t, "live", given).start(t, 16000)
		stops := func(text string) {
			c.say(&protocol.InputText{Text: text})
			if stopped := waitFor[*protocol.AnswerStopped](c); stopped.Check != "rude" {
				t.Errorf("the client got %+v", stopped)
			}
			c.hearsLive(t, "Let us stay polite.")
			<-time.After(5 * time.Second)
		}
		stops("talk")
		stops("look")
		stops("look")
		mu.Lock()
		defer mu.Unlock()
		if len(prompted) != 4 || !strings.Contains(prompted[2], "Let us stay polite.") {
			t.Errorf("the text model got %q", prompted)
		}
		for _, prompt := range prompted {
			if strings.Contains(prompt, "damn") {
				t.Errorf("the text model got %s", prompt)
			}
		}
	})
}
