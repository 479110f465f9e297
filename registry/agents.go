package registry

import "context"

// Agents lets a tool read, create and change the gateway's agents. Errors are *ToolError and list all problems. It is
// safe for concurrent use.
type Agents interface {
	// List returns at most limit agents, sorted by id.
	List(limit int) AgentList
	// Get returns an agent. A NOT_FOUND error suggests similar ids.
	Get(id string) (AgentShown, error)
	// Check returns the error of Save for the same change, without saving.
	Check(change AgentChange) error
	// Save creates or changes an agent. The error is CONFLICT if it isn't in change.State, or already exists.
	Save(ctx context.Context, change AgentChange) (AgentSaved, error)
	// CheckDelete returns the error of Delete, without deleting.
	CheckDelete(id, state string) error
	// Delete removes an agent's edits if it is in that state; an empty state matches any. The error is CONFLICT if
	// other agents switch to it.
	Delete(ctx context.Context, id, state string) (AgentDeleted, error)
}

// AgentChange is a change of an agent. Nil fields don't change.
type AgentChange struct {
	// ID is the agent's id. Empty creates an agent with an id from its name.
	ID string
	// State is the version that the caller has seen; empty matches any.
	State                       string
	Name, Description, Playbook *string
	// Tools are ids of tools. Unknown ones are dropped and reported, unless all are unknown.
	Tools []string
	By    string
}

// AgentLine is an agent in a list.
type AgentLine struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Enabled     bool   `json:"enabled"`
	// Source is "configuration", "file" or "store".
	Source string `json:"source"`
	State  string `json:"state"`
}

// AgentList is a list of agents.
type AgentList struct {
	Agents []AgentLine `json:"agents"`
	// Total counts all agents. Default is the agent for clients that choose none.
	Total   int    `json:"total"`
	Default string `json:"default"`
}

// AgentShown is an agent with its instructions.
type AgentShown struct {
	AgentLine
	Playbook string   `json:"playbook"`
	Tools    []string `json:"tools"`
	AllTools bool     `json:"all_tools,omitempty"`
	SwitchTo []string `json:"switch_to,omitempty"`
	UsedBy   []string `json:"used_by,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// AgentSaved is the result of a change.
type AgentSaved struct {
	AgentLine
	Created      bool          `json:"created"`
	Tools        []string      `json:"tools"`
	AllTools     bool          `json:"all_tools,omitempty"`
	InvalidTools []InvalidName `json:"invalid_tools,omitempty"`
}

// InvalidName is a dropped name and the reason.
type InvalidName struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// AgentDeleted is the result of a deletion.
type AgentDeleted struct {
	ID string `json:"id"`
	// Stays means that the agent still exists without its edits, from a file or the configuration.
	Stays bool `json:"stays"`
}
