package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport/textmodel"
)

// TestAToolOfAScope: only users with the scope that a tool requires have the tool in a turn, also with the persona
// after a switch.
func TestAToolOfAScope(t *testing.T) {
	billing := &Persona{Name: "billing", Tools: []string{"look", "secret"}}
	for _, c := range []struct {
		id     string
		scopes []string
		has    bool
	}{{"without", nil, false}, {"with-another", []string{"secret.write", "kb:secret.read"}, false}, {"with", []string{"kb:x", "secret.read"}, true}} {
		t.Run(c.id, func(t *testing.T) {
			f := newFixture(t, fixtureSetting{options: Options{
				Personas: func(name string) *Persona { return map[string]*Persona{"billing": billing}[name] },
				Persona:  Persona{Name: "default", SwitchTo: []registry.SwitchTarget{{ID: "billing"}}},
			}})
			if _, err := f.respond(t.Context(), Request{ConversationID: "c-" + c.id, User: user.Must("ada"), Vouched: true, Scopes: c.scopes, Message: "Tell me"},
				callsTools("id-1", "secret", `{}`),
				callsTools("id-2", spec.AgentSwitch, `{"agent":"billing","reason":"x"}`),
				callsTools("id-3", "secret", `{}`), says("Yes.")); err != nil {
				t.Fatal(err)
			}
			for i, p := range f.model.prompts {
				offered := slices.ContainsFunc(p.Tools, func(tool textmodel.Tool) bool { return tool.Name == "secret" })
				guide := slices.ContainsFunc(p.Tools, func(tool textmodel.Tool) bool {
					return tool.Name == spec.DescribeTool && strings.Contains(string(tool.Parameters), `"secret"`)
				})
				if offered != c.has || guide != c.has {
					t.Errorf("request %d has the tools %+v", i, p.Tools)
				}
			}
			for i, env := range answers(t, f.last()) {
				if i == 1 {
					continue // the switch
				}
				if env.OK != c.has || !c.has && (env.Error.Type != registry.ErrorNotFound || !strings.Contains(env.Error.Suggestion, "look") || strings.Contains(env.Error.Suggestion, "secret")) {
					t.Errorf("call %d was answered %+v", i, env)
				}
			}
		})
	}
}

// TestARateLimitIsAudited: a call beyond its tool's limit is refused in this turn and in another conversation of the
// user, and is in the audit with its reason.
func TestARateLimitIsAudited(t *testing.T) {
	f := newFixture(t, fixtureSetting{})
	for i, want := range [][]string{{"ok", "RATE_LIMIT"}, {"RATE_LIMIT"}} {
		var made []string
		for n := range want {
			made = append(made, fmt.Sprintf("id-%d", n), "few", fmt.Sprintf(`{"name":"%d"}`, n))
		}
		sent, err := f.respond(t.Context(), Request{ConversationID: fmt.Sprintf("c-of-limits-%d", i), Message: "Go"}, callsTools(made...), says("Done."))
		if err != nil {
			t.Fatal(err)
		}
		if got := sorted(sent.errorTypes()); !slices.Equal(got, sorted(want)) {
			t.Errorf("turn %d: the calls ended %v, want %v", i, got, want)
		}
	}
	refused := 0
	for _, r := range f.audited() {
		if r.ToolID == "few" && r.ErrorType == registry.ErrorRateLimit && !r.OK {
			refused++
		}
	}
	if refused != 2 || len(f.ran()) != 1 {
		t.Errorf("%d refusals are in the audit after %d runs", refused, len(f.ran()))
	}
}
