package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/audit"
	"voicegw/protocol"
)

// TestExtendedThinking: a model that thinks between its answers ends its turn before its calls. Each call runs once and
// is answered, none is withdrawn or fails, the last answer is heard completely, and all of the model's own turns share
// one budget.
func TestExtendedThinking(t *testing.T) {
	t.Parallel()
	tools := newStage(t)
	st := newStack(t, "gemini", setting{
		tools: tools.box, model: "gemini-3.8-live-extended-thinking",
		speed: 50, playback: 50, firstAudioMS: 10,
		scenario: `
name: thinks
rules:
  - when: {text: think}
    do:
      - say: One moment, I am looking it up.
      - call: {tool: lookup, args: {query: a}}
      - then:
          - call: {tool: forecast, args: {city: Paris}}
          - then:
              - say: That is what I have found.
`})
	c := st.start(t, 16000)
	for range 2 {
		c.say(&protocol.InputText{Text: "think"})
		for found := false; !found; {
			said := ""
			for over := false; !over; {
				switch m := c.next().msg.(type) {
				case *protocol.Transcript:
					said = m.Text
				case *protocol.AudioEnd:
					c.say(&protocol.Playback{ItemID: m.ItemID, PlayedMS: m.AudioMS, Done: true})
				case *protocol.Error:
					t.Errorf("error %s: %s", m.Code, m.Message)
				case *protocol.TurnEnded:
					if over = true; m.Status != "completed" {
						t.Errorf("a turn ended %s", m.Status)
					}
				}
			}
			found = strings.Contains(said, "what I have found")
		}
	}
	lookups, forecasts := st.audit.wait(t, "lookup", 2), st.audit.wait(t, "forecast", 2)
	for i := range lookups {
		for _, r := range []audit.Record{lookups[i], forecasts[i]} {
			if !r.OK || !r.Delivered || r.ErrorType != "" {
				t.Errorf("a call is audited as %+v", r)
			}
		}
		var of struct{ Total struct{ Used int } }
		if err := json.Unmarshal(forecasts[i].Budget, &of); err != nil || of.Total.Used != 2 {
			t.Errorf("the second call of a question is not the second of its budget: %s", forecasts[i].Budget)
		}
	}
	if got := slices.Sorted(slices.Values(types(st.tap.waitAnswers(t, 4)))); slices.Compact(got)[0] != "" {
		t.Errorf("the answers' errors are %v", got)
	}
}
