// Package agentdelete implements the tool agent_delete.
package agentdelete

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities of agent_delete.
type Needs struct {
	Agents registry.Agents
}

// Check rejects an impossible deletion before a person is asked for approval.
func Check(_ context.Context, call registry.Call[Args, Needs]) error {
	return call.Needs.Agents.CheckDelete(call.Args.ID, state(call.Args))
}

// Execute deletes the agent.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	deleted, err := call.Needs.Agents.Delete(ctx, call.Args.ID, state(call.Args))
	return registry.Result{Data: deleted}, err
}

func state(a Args) string {
	if a.State == nil {
		return ""
	}
	return *a.State
}
