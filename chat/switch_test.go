package chat

import (
	"slices"
	"strings"
	"testing"

	"voicegw/internal/audit"
	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport/textmodel"
)

// TestSwitchInText: after a switch the new persona answers in the same turn, with its own text and tools, and keeps
// the conversation; it cannot switch back before the user's next message.
func TestSwitchInText(t *testing.T) {
	billing := &Persona{Name: "billing", Version: "b1", Instructions: "You are billing. ", Tools: []string{"look"}, SwitchTo: []registry.SwitchTarget{{ID: "default"}}}
	there := map[string]*Persona{"billing": billing}
	f := newFixture(t, fixtureSetting{options: Options{
		Personas: func(name string) *Persona { return there[name] },
		Persona:  Persona{Name: "default", Instructions: "You are the desk. ", SwitchTo: []registry.SwitchTarget{{ID: "billing", Name: "Billing"}, {ID: "gone"}}},
	}})
	say := func(steps ...step) *turnMessages {
		t.Helper()
		got, err := f.respond(t.Context(), Request{ConversationID: "c-of-switches", User: user.Must("ada"), Message: "My bill is wrong"}, steps...)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	toolsOf := func(p textmodel.Prompt) (names []string) {
		for _, tool := range p.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	say(callsTools("id-1", spec.AgentSwitch, `{"agent":"billing","reason":"a bill"}`),
		callsTools("id-2", spec.AgentSwitch, `{"agent":"default","reason":"back"}`), says("I see it."))
	p := f.last()
	if !strings.Contains(p.Messages[0].Text, "You are billing.") || !slices.Equal(toolsOf(p), []string{spec.AgentSwitch, spec.DescribeTool, "look"}) {
		t.Errorf("billing has the tools %v and says %q", toolsOf(p), p.Messages[0].Text)
	}
	envs := answers(t, p)
	if len(envs) != 2 || !envs[0].OK || !strings.Contains(string(envs[0].Data), "You are now Billing") || envs[1].OK || envs[1].Error.Type != registry.ErrorConflict {
		t.Errorf("the calls were answered %+v", envs)
	}
	c, _, err := f.kept.Load(t.Context(), "c-of-switches")
	if err != nil || c.Agent != "billing" {
		t.Errorf("the conversation is of %q: %v", c.Agent, err)
	}
	if lines := f.audited(); !slices.ContainsFunc(lines, func(r audit.Record) bool {
		return r.Event == audit.EventAgent && r.From == "default" && r.Agent == "billing" && r.Why == "a bill"
	}) {
		t.Errorf("the audit has %+v", lines)
	}
	say(callsTools("id-3", spec.AgentSwitch, `{"agent":"default","reason":"back"}`), says("Hello again."))
	if p := f.last(); !strings.Contains(p.Messages[0].Text, "You are the desk.") {
		t.Errorf("after the switch back the model gets %q", p.Messages[0].Text)
	}
}
