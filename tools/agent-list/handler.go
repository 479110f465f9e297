// Package agentlist implements the tool agent_list.
package agentlist

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities of agent_list.
type Needs struct {
	Agents registry.Agents
}

// Execute lists the agents.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	return registry.Result{Data: call.Needs.Agents.List(int(call.Args.Limit))}, nil
}
