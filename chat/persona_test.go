package chat

import (
	"strings"
	"testing"

	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/transport/textmodel"
)

// TestPersonas: the requested persona answers, with its own text and tools, and keeps the conversation. If it is
// removed, the default one continues.
func TestPersonas(t *testing.T) {
	there := map[string]*Persona{"billing": {Name: "billing", Version: "b1", Instructions: "You are billing. ", Tools: []string{"look"}, Budget: calls.Budget{Total: 2}}}
	f := newFixture(t, fixtureSetting{options: Options{Personas: func(name string) *Persona { return there[name] }}})
	say := func(asked string) textmodel.Prompt {
		t.Helper()
		if _, err := f.respond(t.Context(), Request{ConversationID: "c-of-personas", User: user.Must("ada"), Message: "Hello, " + asked, Agent: asked}, says("Yes.")); err != nil {
			t.Fatal(err)
		}
		return f.last()
	}
	holder := func() string {
		t.Helper()
		c, _, err := f.kept.Load(t.Context(), "c-of-personas")
		if err != nil {
			t.Fatal(err)
		}
		return c.Agent
	}
	if p := say(""); strings.Contains(p.Messages[0].Text, "billing") || len(p.Tools) < 3 || holder() != "default" {
		t.Errorf("the default persona has %d tools and says %q; the conversation is of %s", len(p.Tools), p.Messages[0].Text, holder())
	}
	for _, asked := range []string{"billing", ""} {
		if p := say(asked); !strings.Contains(p.Messages[0].Text, "You are billing.") || len(p.Tools) != 2 || holder() != "billing" {
			t.Errorf("asked for %q: %d tools, %q; the conversation is of %s", asked, len(p.Tools), p.Messages[0].Text, holder())
		}
	}
	delete(there, "billing")
	if p := say(""); strings.Contains(p.Messages[0].Text, "billing") || holder() != "default" {
		t.Errorf("after its removal: %q; the conversation is of %s", p.Messages[0].Text, holder())
	}
	if !f.agent.Has("") || !f.agent.Has("default") || f.agent.Has("billing") {
		t.Error("Has disagrees with the personas")
	}
}
