package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestSwitchingBetweenAsManyAgentsAsThereMayBe: documents of agents cannot make the tool too large for the
// forms, whatever stands in them.
func TestSwitchingBetweenAsManyAgentsAsThereMayBe(t *testing.T) {
	var targets []SwitchTarget
	for i := range 200 { // agent.MaxSwitchTo, with names and descriptions as long as they may be
		targets = append(targets, SwitchTarget{ID: fmt.Sprintf("%064d", i), Name: strings.Repeat("\U0001F600", 100), Description: strings.Repeat("\x01\"<\u2028", 250)})
	}
	e := switchEntry(targets)
	for name, form := range map[string][]byte{"parameters": e.Parameters, "OpenAI": e.Forms.OpenAI, "Gemini": e.Forms.Gemini} {
		if !json.Valid(form) || !strings.Contains(string(form), targets[199].ID) {
			t.Errorf("%s: %.200s", name, form)
		}
	}
}
