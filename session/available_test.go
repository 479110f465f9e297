package session

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// houred returns a registry with the tools watch and clock. Clock is available for an hour, to the agents desk and
// billing.
func houred(t *testing.T) *registry.Registry {
	t.Helper()
	done := handlerFunc(func(context.Context) (registry.Result, error) { return registry.Result{Data: "done"}, nil }).bind()
	clock := entry("clock", "1.0.0")
	now := time.Now().UTC()
	clock.Availability = &spec.Availability{Agents: []string{"desk", "billing"}, Zone: "UTC", Times: []spec.TimeWindow{{From: now.Format("15:04"), To: now.Add(time.Hour).Format("15:04")}}}
	tools, err := registry.Load(registrytest.File(t, clock, entry("watch", "1.0.0")),
		registry.Options{Handlers: map[string]registry.Handler{"clock": done, "watch": done}})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// TestToolHours: a session has the tool in its hour; a later call is refused with the time when it is available again,
// and the next agent does not get the tool.
func TestToolHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := troupe()
		c.put(Agent{Name: "billing", Instructions: "You are billing.", Tools: []string{"clock", "watch"}})
		st := newStage(t, live, func(o *Options) { o.Agents, o.Tools, o.Policy.Tools.Budget = c, houred(t).Snapshot, roomy })
		client := st.connect(startWith(`,"agent":"desk"`))
		model := st.fake.Accept(t)
		synctest.Wait()
		client.last(t, "session.started")
		if got := names(model.Setup().Tools); !slices.Contains(got, "clock") {
			t.Fatalf("the model has the tools %v", got)
		}
		asked(model, "clock", "c1")
		if env := results(t, model)["c1"]; !env.OK {
			t.Errorf("in its hour: %+v", env.Error)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		asked(model, "clock", "c2")
		if env := results(t, model)["c2"]; env.OK || env.Error.Type != registry.ErrorUnavailable || !env.Error.Retryable {
			t.Errorf("after its hour: %+v", env.Error)
		}
		handOver(model, "billing", "c3")
		model.Emit(transport.Reconfigured{})
		synctest.Wait()
		next := reconfigured(model)
		if len(next) != 1 || slices.Contains(names(next[0].Tools), "clock") || !slices.Contains(names(next[0].Tools), "watch") {
			t.Errorf("the model was reconfigured with %+v", next)
		}
	})
}

// TestToolAgents: an agent that is not listed does not get the tool, and its call is answered as for an unknown tool.
func TestToolAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, live, func(o *Options) { o.Agents, o.Tools, o.Policy.Tools.Budget = troupe(), houred(t).Snapshot, roomy })
		st.connect(startText)
		model := st.fake.Accept(t)
		synctest.Wait()
		hasClock(t, model, model.Setup().Tools, false, "c1")
	})
}
