package e2e

import (
	"testing"
	"time"

	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session"
)

// nonBlocking is a setting with a non-blocking tool.
func nonBlocking(scenario string) setting {
	return setting{model: "gemini-3.8-live", limits: session.Limits{AudioAhead: time.Minute}, speed: 50, playback: -1, firstAudioMS: 10, scenario: scenario}
}

// TestNonBlockingResult: an interruption does not stop a non-blocking tool. The model gets its result when it is ready
// and speaks about it.
func TestNonBlockingResult(t *testing.T) {
	t.Parallel()
	tools := newStage(t)
	set := nonBlocking(`
name: besides
rules:
  - when: {utterance: 1}
    do:
      - say: I will look into it.
      - call: report
      - then: [say: Here is the report.]
  - when: {utterance: any}
    do: [say: I am listening.]
`)
	set.tools = tools.box
	tools.hold("report")
	st := newStack(t, "gemini", set)
	c := st.start(t, 16000)
	c.speak(16000, phrase(16000)) // the model reports speech from then on
	tools.waitBegun(t, "report")
	end := waitFor[*protocol.AudioEnd](c)
	c.say(&protocol.Playback{ItemID: end.ItemID, PlayedMS: end.AudioMS, Done: true})
	c.speak(16000, phrase(16000))
	waitFor[*protocol.TurnEnded](c) // the call's turn
	if p := c.turn(); p.status != "completed" || len(p.ended) != 0 {
		t.Errorf("the turn during the tool was %+v", p)
	}
	st.tap.waitAnswers(t, 0)
	tools.release("report")
	// The result starts a turn of the model's own.
	waitFor[*protocol.ToolEnded](c)
	if p := c.turn(); p.status != "completed" {
		t.Errorf("the turn of the result was %+v", p)
	}
	a := st.tap.waitAnswers(t, 1)[0]
	if r := st.audit.wait(t, "report", 1)[0]; !a.envelope.OK || !r.Delivered || r.TurnID != 1 || tools.stops("report") != 0 {
		t.Errorf("the call was answered %s and audited as %+v", a.envelope.Encode(), r)
	}
}

// TestEndlessCaller: a model that calls a tool after each late result stays within the budget of the user's one turn.
func TestEndlessCaller(t *testing.T) {
	t.Parallel()
	tools := newStage(t)
	set := nonBlocking(`
name: endless
rules:
  - when: {text: go}
    do:
      - say: I will look into it.
      - call: report
  - when: {tool: report, ok: true}
    do:
      - say: And once more.
      - call: report
  - when: {tool: report, error: BUDGET_EXCEEDED}
    do:
      - say: That is all.
`)
	set.tools = tools.box
	st := newStack(t, "gemini", set)
	c := st.start(t, 16000)
	for round := 1; round <= 2; round++ { // the user's next turn has a new budget
		c.say(&protocol.InputText{Text: "go"})
		for over := false; !over; {
			switch m := c.next().msg.(type) {
			case *protocol.AudioEnd:
				c.say(&protocol.Playback{ItemID: m.ItemID, PlayedMS: m.AudioMS, Done: true})
			case *protocol.Error:
				t.Fatalf("the gateway reported %s: %s", m.Code, m.Message)
			case *protocol.TurnEnded: // the answer to the refused call is the last one
				over = len(messages[*protocol.ToolEnded](c)) == 4*round
			}
		}
		ended := messages[*protocol.ToolEnded](c)[4*(round-1):]
		for i, m := range ended {
			if m.OK != (i < 3) {
				t.Errorf("round %d: call %d ended with %+v", round, i+1, m)
			}
		}
		if e := errorOf(t, ended[3]); e.Type != registry.ErrorBudgetExceeded {
			t.Errorf("round %d: the last call ended with %+v", round, e)
		}
		tools.ran(t, "report", 3*round)
	}
}
