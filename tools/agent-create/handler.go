// Package agentcreate implements the tool agent_create.
package agentcreate

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities of agent_create.
type Needs struct {
	Agents registry.Agents
}

// Check rejects an invalid agent before a person is asked for approval.
func Check(_ context.Context, call registry.Call[Args, Needs]) error {
	return call.Needs.Agents.Check(changeOf(call))
}

// Execute creates the agent.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	saved, err := call.Needs.Agents.Save(ctx, changeOf(call))
	return registry.Result{Data: saved}, err
}

func changeOf(call registry.Call[Args, Needs]) registry.AgentChange {
	a := call.Args
	return registry.AgentChange{Name: &a.Name, Playbook: &a.Playbook, Description: a.Description, Tools: a.Tools,
		By: "user:" + call.Session.UserID}
}
