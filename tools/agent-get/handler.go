// Package agentget is the tool agent_get: it shows an agent.
package agentget

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities of agent_get.
type Needs struct {
	Agents registry.Agents
}

// Execute shows it.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	shown, err := call.Needs.Agents.Get(call.Args.ID)
	if err != nil {
		return registry.Result{}, err
	}
	return registry.Result{Data: shown}, nil
}
