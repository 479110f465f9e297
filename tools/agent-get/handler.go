// Package agentget implements the tool agent_get.
package agentget

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities of agent_get.
type Needs struct {
	Agents registry.Agents
}

// Execute returns the agent.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	shown, err := call.Needs.Agents.Get(call.Args.ID)
	if err != nil {
		return registry.Result{}, err
	}
	return registry.Result{Data: shown}, nil
}
