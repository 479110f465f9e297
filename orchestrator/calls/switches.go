package calls

import (
	"slices"

	"voicegw/prompts"
	"voicegw/registry"
)

// MaxTurnSwitches is how often the agent may change in one turn, MaxSwitches how often in a
// conversation.
const (
	MaxTurnSwitches = 2
	MaxSwitches     = 12
)

// switches is what a conversation remembers of its changes of agent.
type switches struct {
	// Turn is how often the agent has changed since the user last said something, All how often at all.
	Turn int `json:"turn,omitempty"`
	All  int `json:"all,omitempty"`
	// Left are the agents that have handed the user over since then, at most MaxTurnSwitches.
	Left []string `json:"left,omitempty"`
}

// spoken records that the user has said something.
func (s *switches) spoken() { s.Turn, s.Left = 0, nil }

// MaySwitch returns why a tool may not hand the user over to an agent now; nil if it may.
func (b *Book) MaySwitch(to string) *registry.Error {
	s := &b.switches
	switch {
	case s.All >= MaxSwitches:
		return registry.NewError(registry.ErrorConflict, prompts.SwitchedTooOften(MaxSwitches, "this conversation"))
	case slices.Contains(s.Left, to):
		return registry.NewError(registry.ErrorConflict, prompts.SwitchBack(to))
	case s.Turn >= MaxTurnSwitches:
		return registry.NewError(registry.ErrorConflict, prompts.SwitchedTooOften(MaxTurnSwitches, "this turn"))
	}
	return nil
}

// Switch goes on as another agent, with its tools (nil without any) and its budget, of which a zero field
// is the mode's default. A switch buys nothing: the turn goes on with the budget that it has. from is the
// agent before.
func (b *Book) Switch(from string, to Agent, tools *registry.Snapshot, budget Budget) {
	b.agent, b.tools, b.next = to, tools, &budget
	if b.budget == nil {
		b.budget = &b.rules.Budget
	}
	s := &b.switches
	s.Turn++
	s.All++
	if len(s.Left) < MaxTurnSwitches {
		s.Left = append(slices.Clip(s.Left), from)
	}
}
