// Package agentlist is the tool agent_list: it lists the agents of the gateway.
package agentlist

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities of agent_list.
type Needs struct {
	Agents registry.Agents
}

// Execute lists them.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	return registry.Result{Data: call.Needs.Agents.List(int(call.Args.Limit))}, nil
}
