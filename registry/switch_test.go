package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"voicegw/registry/spec"
)

// TestSwitchingBetweenTheMostAgents: the tool is never too large for its forms, whatever the agents' documents
// contain.
func TestSwitchingBetweenTheMostAgents(t *testing.T) {
	var targets []SwitchTarget
	for i := range 200 { // agent.MaxSwitchTo, with the longest names and descriptions
		targets = append(targets, SwitchTarget{ID: fmt.Sprintf("%064d", i), Name: strings.Repeat("\U0001F600", 100), Description: strings.Repeat("\x01\"<\u2028", 250)})
	}
	e := switchTool(targets).Entry
	for name, form := range map[string][]byte{"parameters": e.Parameters, "OpenAI": e.Forms.OpenAI, "Gemini": e.Forms.Gemini} {
		if !json.Valid(form) || !strings.Contains(string(form), targets[199].ID) {
			t.Errorf("%s: %.200s", name, form)
		}
	}
}

// TestSessionsThatSwitchAlikeShareTheTool: its schema and forms take too long to make for each session; and the cache
// is limited.
func TestSessionsThatSwitchAlikeShareTheTool(t *testing.T) {
	s := noTools()
	of := func(id, name string) *Tool {
		return s.Switching([]SwitchTarget{{ID: id, Name: name}, {ID: "desk"}}).tools[spec.AgentSwitch]
	}
	first := of("billing", "Bills")
	if of("billing", "Bills") != first {
		t.Error("the same targets have two tools")
	}
	if of("billing", "Invoices") == first || of("sales", "Bills") == first {
		t.Error("other targets have the same tool")
	}
	for i := range maxSwitches + 10 {
		of(fmt.Sprint("agent-", i), "")
	}
	if n := len(s.switches.all); n > maxSwitches {
		t.Errorf("%d tools are cached", n)
	}
	if of("billing", "Bills").Guide != first.Guide {
		t.Error("it differs when it is made again")
	}
}
