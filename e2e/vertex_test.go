package e2e

import (
	"slices"
	"testing"

	"voicegw/protocol"
)

// TestToolRoundsOnVertex: Vertex completes the model's turn after each result and answers in a turn of its own. For the
// client that is one turn with one budget.
func TestToolRoundsOnVertex(t *testing.T) {
	t.Parallel()
	tools := newStage(t)
	st := newStack(t, "gemini", setting{
		tools: tools.box, model: "projects/p/locations/l/publishers/google/models/gemini-live-2.5-flash-native-audio",
		speed: 50, playback: 50, firstAudioMS: 10,
		scenario: `
name: rounds
rules:
  - when: {text: rounds}
    do:
      - call: {tool: lookup, args: {query: a}}
      - then:
          - call: {tool: forecast, args: {city: Paris}}
          - then:
              - say: That is what I have found.
`})
	c := st.start(t, 16000)
	for range 2 {
		c.say(&protocol.InputText{Text: "rounds"})
		playTurn(c)
	}
	for i, r := range append(st.audit.wait(t, "lookup", 2), st.audit.wait(t, "forecast", 2)...) {
		if want := []int{1, 2, 1, 2}[i]; r.TurnID != want || !r.OK || !r.Delivered {
			t.Errorf("call %d is audited as %+v, want turn %d", i, r, want)
		}
	}
	if got := slices.Sorted(slices.Values(types(st.tap.waitAnswers(t, 4)))); slices.Compact(got)[0] != "" {
		t.Errorf("the answers' errors are %v", got)
	}
}
