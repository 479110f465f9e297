// Package agentupdate implements the tool agent_update.
package agentupdate

import (
	"context"

	"voicegw/registry"
)

// Needs are the capabilities of agent_update.
type Needs struct {
	Agents registry.Agents
}

// Check rejects an invalid change before a person is asked for approval.
func Check(_ context.Context, call registry.Call[Args, Needs]) error {
	change, err := changeOf(call)
	if err != nil {
		return err
	}
	return call.Needs.Agents.Check(change)
}

// Execute makes the change.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	change, err := changeOf(call)
	if err != nil {
		return registry.Result{}, err
	}
	saved, err := call.Needs.Agents.Save(ctx, change)
	return registry.Result{Data: saved}, err
}

func changeOf(call registry.Call[Args, Needs]) (registry.AgentChange, error) {
	a := call.Args
	c := registry.AgentChange{ID: a.ID, Name: a.Name, Playbook: a.Playbook, Description: a.Description, Tools: a.Tools,
		By: "user:" + call.Session.UserID}
	if a.State != nil {
		c.State = *a.State
	}
	if c.Name == nil && c.Playbook == nil && c.Description == nil && c.Tools == nil {
		e := registry.Errorf(registry.ErrorValidation, "Nothing would change.")
		e.Suggestion = "Give at least one of name, description, playbook and tools."
		return c, e
	}
	return c, nil
}
