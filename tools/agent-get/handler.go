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
	return registry.Result{Data: shown}, err
}
