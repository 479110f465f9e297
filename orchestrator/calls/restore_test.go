package calls

import (
	"encoding/json"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// TestQuestionOfAPreviousAgent: after a takeover the current agent continues, and an approved call runs with the
// tools of the agent that asked. If those are no longer known, nothing runs.
func TestQuestionOfAPreviousAgent(t *testing.T) {
	rules := Policy{Mode: spec.ModeVoice, Budget: Budget{Total: 30}}
	support, billing := toolbox().Only([]string{"pay", "time"}), toolbox().Only([]string{"search"})
	for name, tools := range map[string]*registry.Snapshot{"its tools are known": support, "they are not": nil} {
		before := newDesk(support, rules)
		before.Book().SetAgent(Agent{Name: "support"})
		before.Decide(calling("asked", "", "pay", `{"amount":5}`))
		before.asked("asked", "token")
		before.Book().Switch("support", Agent{Name: "billing"}, billing, Budget{})
		data, err := json.Marshal(before.Memory())
		var m Memory
		if err != nil || json.Unmarshal(data, &m) != nil || len(m.Questions) != 1 || m.Questions[0].Agent.Name != "support" {
			t.Fatalf("%s, %v", data, err)
		}
		m.Questions[0].Token, m.Questions[0].Tools = "token", tools

		b := newDesk(billing, rules)
		b.Book().SetAgent(Agent{Name: "billing"})
		b.rules.Prefix = "again_"
		b.Restore(m, b.rules.Prefix)
		b.Answered("token", true)
		var d decision
		for _, a := range b.Resolved(time.Time{}, Resolved{Token: "token", Outcome: OutcomeApproved, By: ByClient}) {
			if a, ok := a.(Approved); ok {
				d = b.decided("approved", b.Approve(time.Time{}, 1, a))
			}
		}
		if tools == nil {
			if d.Verdict != answeredNow || d.Envelope.Error.Type != registry.ErrorConflict {
				t.Errorf("%s: %+v", name, d)
			}
			continue
		}
		if d.Verdict != runs || d.Prepared.Tool().ToolID != "pay" || string(d.Prepared.Args()) != `{"amount":5}` {
			t.Fatalf("%s: %+v", name, d)
		}
		if k := b.find(b.names["approved"]); k.by.Name != "support" {
			t.Errorf("it is the call of %+v", k.by)
		}
		if why, words := nests(t, &b, "approved", "time"); why != "" {
			t.Errorf("it calls time: %s, %s", why, words)
		}
	}
}
