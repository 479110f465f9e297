package session

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/transport"
)

// TestMarkInPrompt: each session has a random mark; its prompt names it, and the gateway's own texts begin with it.
func TestMarkInPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{before: "User: hello"}
		st := newStage(t, hearing, func(o *Options) {
			desk.give(o)
			o.Instructions = func(_ *Agent, _ *registry.Snapshot, own prompts.Mark, _ string) string { return own.Text() }
		})
		var marks []string
		for range 2 {
			st.connect(startWith(`,"conversation_id":"conv-of-nobody-with-a-name-at-all"`))
			model := st.fake.Accept(t)
			synctest.Wait()
			own := model.Setup().Instructions
			i := slices.IndexFunc(model.Commands(), func(c transport.Command) bool {
				text, ok := c.(transport.UserText)
				return ok && strings.HasPrefix(text.Text, own+" The user has been in this conversation in writing")
			})
			if !strings.HasPrefix(own, "[voicegw:") || i < 0 {
				t.Errorf("the prompt names %q, the model got %+v", own, model.Commands())
			}
			marks = append(marks, own)
		}
		if marks[0] == marks[1] {
			t.Errorf("two sessions have the mark %s", marks[0])
		}
	})
}
