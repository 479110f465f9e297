package e2e

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
)

// liveRules make a Live model delegate a typed request, and its text model propose a payment.
const liveRules = `
name: delegation
rules:
  - when: {text: '^pay$'}
    do:
      - call: {tool: pay, args: {amount: 5, to: Bob}}
      - then:
          - remember: {token: "${result.error.confirmation_request.token}", reference: "${result.error.details.reference}"}
          - say: Please approve the payment.
      - on_error: [{say: Please approve the payment.}]
  - when: {text: 'The user approved pay'}
    do: [say: Bob has his money.]
  - when: {text: any}
    do: [say: All right.]
`

// TestLive: a model without tools delegates a payment. The user hears that it needs approval, approves it, and it runs
// once.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools := newStageOn(t, nil)
		st := newStack(t, "live", setting{timed: true, scenario: liveRules, tools: tools.box})
		c := st.start(t, 16000)
		c.say(&protocol.InputText{Text: "pay"})
		asked := waitFor[*protocol.ConfirmationRequest](c)
		if string(asked.Args) != paid {
			t.Errorf("the user was asked %+v", asked)
		}
		c.hearsLive(t, "Please approve the payment.")
		tools.ran(t, "pay", 0)
		c.resolve(asked.Token, true)
		if ended := waitFor[*protocol.ToolEnded](c); !ended.OK || ended.Tool != "pay" {
			t.Errorf("the payment ended with %+v", ended)
		}
		c.hearsLive(t, "Bob has his money.")
		if saw := tools.runs("pay"); len(saw) != 1 || saw[0] != paid {
			t.Errorf("pay ran with %v", saw)
		}
	})
}

// TestLiveApprovedAtOnce: the user approves while the text model still writes its request for approval. The user hears the
// outcome, and never the request.
func TestLiveApprovedAtOnce(t *testing.T) {
	slow := strings.Replace(liveRules, "on_error: [{say:", "on_error: [{wait: 3s}, {say:", 1)
	synctest.Test(t, func(t *testing.T) {
		tools := newStageOn(t, nil)
		st := newStack(t, "live", setting{timed: true, scenario: slow, tools: tools.box})
		c := st.start(t, 16000)
		c.say(&protocol.InputText{Text: "pay"})
		asked := waitFor[*protocol.ConfirmationRequest](c)
		<-time.After(time.Second) // the text model has begun
		c.resolve(asked.Token, true)
		c.hearsLive(t, "Bob has his money.")
		<-time.After(20 * time.Second)
		c.say(&protocol.InputText{Text: "thanks"})
		c.hearsLive(t, "All right.")
		for _, m := range messages[*protocol.Transcript](c) {
			if m.Role == "assistant" && strings.Contains(m.Text, "approve the payment") {
				t.Errorf("the user hears %q after the outcome", m.Text)
			}
		}
		if saw := tools.runs("pay"); len(saw) != 1 {
			t.Errorf("pay ran with %v", saw)
		}
	})
}

// hearsLive waits until the model has said a sentence.
func (c *client) hearsLive(t *testing.T, sentence string) {
	t.Helper()
	for {
		if m := waitFor[*protocol.Transcript](c); m.Role == "assistant" && strings.Contains(m.Text, sentence) {
			return
		}
	}
}

// TestLiveExactNotice: the provider plays a notice with a transcript. The model answers the user only after the user has
// heard it.
func TestLiveExactNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStack(t, "live", setting{timed: true, notice: noticeText, speech: notice()})
		c := st.start(t, 24000)
		c.say(&protocol.InputText{Text: "hello"})
		end := waitFor[*protocol.AudioEnd](c)
		if end.AudioMS < 1900 || end.AudioMS > 2200 || !strings.HasPrefix(end.ItemID, "item_") {
			t.Errorf("the notice is %+v", end)
		}
		if words := messages[*protocol.Transcript](c); len(words) != 1 || words[0].Text != noticeText || words[0].Role != "assistant" {
			t.Errorf("the transcripts are %+v", words)
		}
		c.say(&protocol.Playback{ItemID: end.ItemID, PlayedMS: end.AudioMS, Done: true})
		if answer := waitFor[*protocol.AudioEnd](c); answer.ItemID == end.ItemID {
			t.Errorf("the answer is %+v", answer)
		}
	})
}
