package e2e

import (
	"strings"
	"testing"

	"voicegw/protocol"
)

const contextScenario = `
name: context
rules:
  - when: {text: what do I look at, remembers: '^user: .*page.*order 42'}
    do: [{say: You look at your order.}]
  - when: {text: what do I look at}
    do: [{say: I do not know.}]
`

// TestContextReachesTheModel: on each wire the model does not answer the page's context, but knows it afterwards.
func TestContextReachesTheModel(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			c := newStack(t, provider, setting{speed: 50, firstAudioMS: 10, scenario: contextScenario}).start(t, 16000)
			c.say(&protocol.InputContext{Text: "The user is now looking at order 42."})
			c.say(&protocol.InputText{Text: "what do I look at"})
			for {
				m := waitFor[*protocol.Transcript](c)
				if m.Role == "user" && m.Text != "what do I look at" {
					t.Errorf("the client showed %q", m.Text)
				}
				if m.Role == "assistant" && strings.HasSuffix(m.Text, ".") {
					if m.Turn != 1 || !strings.Contains(m.Text, "your order") {
						t.Errorf("in turn %d the model says %q", m.Turn, m.Text)
					}
					return
				}
			}
		})
	}
}
