package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/session"
)

// many returns two agents that hand off to each other, among agents up to that number, with these tools in addition to
// their own.
func many(agents int, tools []string) troupe {
	all := deskAndBilling()
	for i := range agents - len(all) {
		name := fmt.Sprintf("agent-%d", i)
		all[name] = &session.Agent{Name: name, Version: "1", Instructions: "You are " + name + ".", Tools: tools}
	}
	for _, name := range []string{"desk", "billing"} {
		all[name].Tools = slices.Concat(all[name].Tools, tools)
	}
	return all
}

// BenchmarkAgents measures the start of a session and its switch to another agent, with two agents and ten tools, and
// with 1,000 agents and 200 tools (20 for each agent).
func BenchmarkAgents(b *testing.B) {
	for _, size := range []struct{ agents, tools int }{{2, 10}, {1000, 200}} {
		b.Run(fmt.Sprintf("%d agents, %d tools", size.agents, size.tools), func(b *testing.B) {
			var more []registry.Entry
			var own []string
			for i := 10; i < size.tools; i++ {
				id := fmt.Sprintf("extra_%d", i)
				more = append(more, testTool(b, id, `"city":{"type":"string"}`, `"city"`, func(*spec.Spec) {}))
				if len(own) < 18 {
					own = append(own, id)
				}
			}
			st := newStack(b, "openai", setting{scenario: switchScenario, tools: newStageOn(b, nil, more...).box, agents: many(size.agents, own)})
			var starting, switching []time.Duration
			for b.Loop() {
				began := time.Now()
				c := st.connect(b)
				c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000, Agent: "desk"})
				id := waitFor[*protocol.SessionStarted](c).SessionID
				starting = append(starting, time.Since(began))
				began = time.Now()
				st.switchTo(b, id, "billing")
				if m := waitFor[*protocol.AgentSwitched](c); m.To != "billing" {
					b.Fatalf("it went to %s", m.To)
				}
				switching = append(switching, time.Since(began))
				c.say(&protocol.End{})
				waitFor[*protocol.SessionEnded](c)
			}
			for what, all := range map[string][]time.Duration{"ms-until-begun": starting, "ms-until-switched": switching} {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, what)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func (st *stack) switchTo(b *testing.B, id, agent string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, st.url+"/v1/sessions/"+id+"/agent", strings.NewReader(`{"agent":"`+agent+`"}`))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+operatorsKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := st.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode/100 != 2 {
		b.Fatalf("the switch was answered with %s, %v", resp.Status, err)
	}
}
