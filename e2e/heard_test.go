package e2e

import (
	"slices"
	"testing"

	"voicegw/protocol"
)

// longSentence takes the simulator's voice about twelve seconds.
const longSentence = "I will now talk for quite a long time, so that there is something to interrupt, and I will " +
	"not stop before I am told to, because that is what this test is about, and nothing else."

// TestSpeakToolSpeakInterrupted: the model speaks at length, calls a tool and speaks again, all before playback ends.
// The stop button flushes both answers, the model learns the heard part of each, if its wire supports that, and no
// audio of either follows.
func TestSpeakToolSpeakInterrupted(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{speed: 50, playback: 50, scenario: `
name: speak, tool, speak
rules:
  - when: {text: talk}
    do:
      - say: ` + longSentence + `
      - call: {tool: lookup, args: {query: it}}
      - then: [say: That is all.]
  - when: {text: again}
    do: [say: "Yes?"]
`}, func(t *testing.T, provider string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		c.say(&protocol.InputText{Text: "talk"})
		first := waitFor[*protocol.AudioEnd](c)
		second := waitFor[*protocol.AudioEnd](c)
		// Waits for each report, at any speed of the machine.
		c.say(&protocol.Playback{ItemID: first.ItemID, PlayedMS: 200})
		c.say(&protocol.Interrupt{})
		for i, want := range []struct {
			item   string
			played int64
		}{{first.ItemID, 400}, {second.ItemID, 0}} {
			flush := waitFor[*protocol.AudioFlush](c)
			if flush.ItemID != want.item || flush.Reason != "user_stop" {
				t.Fatalf("flush %d is %+v, want %s; %s", i+1, flush, want.item, c.history())
			}
			c.say(&protocol.Playback{ItemID: want.item, PlayedMS: want.played, Done: true})
			if provider != "openai" {
				continue
			}
			cut := st.tap.wait(t, "the truncation of "+want.item, func(m map[string]any) bool {
				return m["type"] == "conversation.item.truncate" && m["item_id"] == want.item
			})
			if cut["audio_end_ms"] != float64(want.played) {
				t.Errorf("the model got %v of %s, and %d ms were heard", cut["audio_end_ms"], want.item, want.played)
			}
		}
		if ended := waitFor[*protocol.TurnEnded](c); ended.Status != "interrupted" {
			t.Errorf("the turn ended %s", ended.Status)
		}
		c.say(&protocol.InputText{Text: "again"})
		third := waitFor[*protocol.AudioStart](c).ItemID
		if third == first.ItemID || third == second.ItemID {
			t.Errorf("%s is repeated", third)
		}
		playTurn(c)
		nothingAfterFlush(t, c.seen, second.ItemID)
		if errs := messages[*protocol.Error](c); len(errs) != 0 {
			t.Errorf("the client got %+v", errs[0])
		}
	})
}

// TestFarewellAfterLongSentence: the model says a long sentence, ends the session with a tool and says goodbye. All of
// it arrives long before it is heard; the session lasts until the client reports the end of the farewell.
func TestFarewellAfterLongSentence(t *testing.T) {
	t.Parallel()
	const farewell = "Goodbye and thank you for calling."
	for tool, reason := range map[string]string{"end_voice_session": "tool_ended", "ignore_user": "blocked"} {
		for _, provider := range providers {
			t.Run(tool+" "+provider, func(t *testing.T) {
				t.Parallel()
				args := map[string]string{"end_voice_session": "reason: user_goodbye", "ignore_user": "duration_seconds: 90"}[tool]
				st := newStack(t, provider, setting{speed: 50, playback: 50, firstAudioMS: 10, tools: newToolbox(t), scenario: `
name: the end
rules:
  - when: {text: goodbye}
    do:
      - say: ` + longSentence + `
      - call: {tool: ` + tool + `, args: {` + args + `, farewell_message: "` + farewell + `"}}
      - then:
          - say: ` + farewell + `
`})
				c := st.startAs(t, "mallory")
				c.say(&protocol.InputText{Text: "goodbye"})
				sentence := waitFor[*protocol.AudioEnd](c)
				c.say(&protocol.Playback{ItemID: sentence.ItemID, PlayedMS: 200})
				bytes := len(c.seen)
				hearFarewell(c, farewell, reason)
				if sentence.AudioMS < 5000 || slices.ContainsFunc(c.seen[:bytes], func(h happening) bool { return isEnded(h.msg, reason) }) {
					t.Errorf("the sentence took %d ms; %s", sentence.AudioMS, c.history())
				}
			})
		}
	}
}
