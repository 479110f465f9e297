package registry

import "context"

// Agents are the agents of the gateway, which a tool may make, read and change. Their errors are *ToolError,
// with everything that is wrong at once. All methods may be called concurrently.
type Agents interface {
	// List returns at most limit agents, by id.
	List(limit int) AgentList
	// Get returns one agent. NOT_FOUND names those with a similar id.
	Get(id string) (AgentShown, error)
	// Check returns the error of Save with the same change, and writes nothing.
	Check(change AgentChange) error
	// Save makes an agent or changes one. CONFLICT if it is not in the state that was seen, or exists already.
	Save(ctx context.Context, change AgentChange) (AgentSaved, error)
	// CheckDelete returns the error of Delete, and writes nothing.
	CheckDelete(id, state string) error
	// Delete ends what was edited of an agent that is in that state; an empty state fits any. CONFLICT if
	// others switch to it.
	Delete(ctx context.Context, id, state string) (AgentDeleted, error)
}

// AgentChange is what a tool wants an agent to be. What is nil stays as it is.
type AgentChange struct {
	// ID is the agent's; empty makes a new one, whose id comes from its name.
	ID string
	// State is the agent's as the caller has seen it; empty fits any.
	State                       string
	Name, Description, Playbook *string
	// Tools are ids of tools. Those that do not exist are left out and named, unless all are such.
	Tools []string
	// By is who changes it.
	By string
}

// AgentLine is an agent in a list.
type AgentLine struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Enabled     bool   `json:"enabled"`
	// Source is "configuration", "file" or "store".
	Source string `json:"source"`
	// State identifies what it is like now.
	State string `json:"state"`
}

// AgentList is a list of agents.
type AgentList struct {
	Agents []AgentLine `json:"agents"`
	// Total is how many there are, Default the one of clients that name none.
	Total   int    `json:"total"`
	Default string `json:"default"`
}

// AgentShown is an agent with what it is told.
type AgentShown struct {
	AgentLine
	Playbook string `json:"playbook"`
	// Tools are those that it may use; AllTools says that it may use all there are.
	Tools    []string `json:"tools"`
	AllTools bool     `json:"all_tools,omitempty"`
	SwitchTo []string `json:"switch_to,omitempty"`
	// UsedBy are the agents that switch to it.
	UsedBy []string `json:"used_by,omitempty"`
	// Problems are what is not right with it at this gateway.
	Problems []string `json:"problems,omitempty"`
}

// AgentSaved is what came of a change.
type AgentSaved struct {
	AgentLine
	Created bool `json:"created"`
	// Tools are those that it may use now; AllTools says that it may use all there are.
	Tools    []string `json:"tools"`
	AllTools bool     `json:"all_tools,omitempty"`
	// InvalidTools were left out.
	InvalidTools []InvalidName `json:"invalid_tools,omitempty"`
}

// InvalidName is a name that was left out, and why.
type InvalidName struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// AgentDeleted is what came of a deletion.
type AgentDeleted struct {
	ID string `json:"id"`
	// Stays says that the agent comes from a file or from the configuration, and is as it was before
	// the edits.
	Stays bool `json:"stays"`
}
