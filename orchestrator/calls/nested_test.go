package calls

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// nests makes the tool of a running call call another tool, and returns the type of the error and its text; both are
// empty if the call may run.
func nests(t *testing.T, b *desk, call, tool string) (registry.ErrorType, string) {
	t.Helper()
	name := b.names[call]
	do := b.Nested(Nested{Call: name, Caller: b.find(name).runs, ID: name + ".1", Tool: tool, Args: json.RawMessage(`{}`)})
	permit, ok := do[0].(Permit)
	switch {
	case len(do) != 1 || !ok || permit.ID != name+".1":
		t.Fatalf("%s by %s: %+v", tool, call, do)
	case permit.Refused != nil:
		return permit.Refused.Error.Type, permit.Refused.Error.Message
	}
	return "", ""
}

// TestToolsCallNoToolsOfTheModel: a tool calls neither the client's tools nor the switch of agents, which are
// for the model, although its agent has both.
func TestToolsCallNoToolsOfTheModel(t *testing.T) {
	scroll, problems := registry.Declare(registry.Declared{Name: "scroll", Description: "Scrolls the page.", ReadOnly: true})
	if problems != nil {
		t.Fatal(problems)
	}
	tools, err := toolbox().With([]*registry.Tool{scroll})
	if err != nil {
		t.Fatal(err)
	}
	b := newDesk(tools.Switching([]registry.SwitchTarget{{ID: "billing"}}), Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 30}})
	b.Decide(calling("a", "", "get", `{"id":"1"}`))
	for tool, args := range map[string]string{"scroll": `{}`, spec.AgentSwitch: `{"agent":"billing","reason":"It is about a bill.","message":"Ada has a bill."}`} {
		model := b.clone()
		if d := model.Decide(calling("b", "", tool, args)); d.Verdict != runs {
			t.Errorf("the model calls %s: %+v", tool, d)
		}
		name := b.names["a"]
		do := b.Nested(Nested{Call: name, Caller: "get", ID: name + ".1", Tool: tool, Args: json.RawMessage(args)})
		permit, _ := do[0].(Permit)
		if permit.Refused == nil || permit.Refused.Error.Type != registry.ErrorPermanent || permit.Refused.Error.Message != tool+" was not run: tools cannot call it." {
			t.Errorf("get calls %s: %+v", tool, permit.Refused)
		}
	}
	if why, words := nests(t, &b, "a", "time"); why != "" {
		t.Errorf("get calls time: %s, %s", why, words)
	}
}

// TestNestedCallsAfterASwitch: a running tool continues with the tools of its own agent, as does one that the user
// approves later; the next agent's tools are for its own calls.
func TestNestedCallsAfterASwitch(t *testing.T) {
	b := newDesk(toolbox().Only([]string{"get", "time", "pay"}), Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 30, Retrieval: 30}})
	b.Book().SetAgent(Agent{Name: "support"})
	b.Decide(calling("before", "", "get", `{"id":"1"}`))
	b.Decide(calling("asked", "", "pay", `{"amount":5}`))
	b.asked("asked", "token")
	b.Book().Switch("support", Agent{Name: "billing"}, toolbox().Only([]string{"search"}), Budget{})
	b.Decide(calling("after", "", "search", `{"query":"x"}`))

	b.Answered("token", true)
	for _, a := range b.Resolved(time.Time{}, Resolved{Token: "token", Outcome: OutcomeApproved, By: ByClient}) {
		if a, ok := a.(Approved); ok {
			b.decided("approved", b.Approve(time.Time{}, 1, a))
		}
	}
	for _, tc := range []struct {
		by, tool string
		may      bool
	}{
		{"before", "time", true},
		{"before", "search", false},
		{"approved", "time", true},
		{"approved", "search", false},
		{"after", "get", false},
	} {
		why, words := nests(t, &b, tc.by, tc.tool)
		if tc.may && why != "" || !tc.may && (why != registry.ErrorNotFound || !strings.Contains(words, tc.tool)) {
			t.Errorf("the call %q calls %s: %q, %s", tc.by, tc.tool, why, words)
		}
	}
}

// TestNestedCallsCountAfterASwitch: the turn's budgets continue, so a search by a tool of the previous agent counts,
// although the current agent has no search.
func TestNestedCallsCountAfterASwitch(t *testing.T) {
	b := newDesk(toolbox().Only([]string{"get", "search"}), Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 30, Retrieval: 2}})
	b.Book().SetAgent(Agent{Name: "support"})
	b.Decide(calling("before", "", "get", `{"id":"1"}`))
	b.Book().Switch("support", Agent{Name: "billing"}, toolbox().Only([]string{"time"}), Budget{})
	var refused []registry.ErrorType
	for range 2 {
		why, _ := nests(t, &b, "before", "search")
		refused = append(refused, why)
	}
	if want := []registry.ErrorType{"", registry.ErrorBudgetExceeded}; !slices.Equal(refused, want) {
		t.Errorf("two searches after get, with a budget of two retrieval calls: %q, want %q", refused, want)
	}
}

// TestApprovedCallCountsAsItsAgents: an approved search of the previous agent counts as a search, although the
// current agent has none.
func TestApprovedCallCountsAsItsAgents(t *testing.T) {
	b := newDesk(toolbox().Only([]string{"search"}), Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 30, Retrieval: 5}, Confirm: []string{"search"}})
	b.Book().SetAgent(Agent{Name: "support"})
	b.Decide(calling("asked", "", "search", `{"query":"x"}`))
	b.asked("asked", "token")
	b.Book().Switch("support", Agent{Name: "billing"}, toolbox().Only([]string{"time"}), Budget{})
	b.Book().BeginTurn()
	b.Answered("token", true)
	for _, a := range b.Resolved(time.Time{}, Resolved{Token: "token", Outcome: OutcomeApproved, By: ByClient}) {
		if a, ok := a.(Approved); ok {
			b.Approve(time.Time{}, 2, a)
		}
	}
	if usage := string(b.Book().Usage()); !strings.Contains(usage, `"retrieval":{"used":1,`) {
		t.Errorf("the budget is %s", usage)
	}
}
