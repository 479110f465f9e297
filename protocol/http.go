package protocol

import "encoding/json"

// Job is a job in the answers of /v1/jobs.
type Job struct {
	ID           string     `json:"id"`
	Tool         string     `json:"tool"`
	Name         string     `json:"name"`
	State        string     `json:"state"`
	User         string     `json:"user"`
	Conversation string     `json:"conversation_id"`
	Session      string     `json:"session_id"`
	Agent        string     `json:"agent,omitempty"`
	CallID       string     `json:"call_id,omitempty"`
	Attempt      int        `json:"attempt"`
	Node         string     `json:"node,omitempty"`
	CreatedAt    Time       `json:"created_at"`
	StartedAt    Time       `json:"started_at,omitzero"`
	EndedAt      Time       `json:"ended_at,omitzero"`
	ToldAt       Time       `json:"told_at,omitzero"` // when the conversation got the result
	Progress     *JobReport `json:"progress,omitempty"`
	// Envelope is the result; the list has none.
	Envelope json.RawMessage `json:"envelope,omitempty"`
}

// JobReport is a job's latest report on itself.
type JobReport struct {
	Text     string   `json:"text,omitempty"`
	Fraction *float64 `json:"fraction,omitempty"`
	At       Time     `json:"at"`
}

// Agent is an agent in the answers of /v1/agents.
type Agent struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Enabled     bool     `json:"enabled"`
	Source      string   `json:"source"`
	Version     string   `json:"version,omitempty"`
	Revision    uint64   `json:"revision,omitempty"`
	UpdatedAt   Time     `json:"updated_at,omitzero"`
	UpdatedBy   string   `json:"updated_by,omitempty"`
	Problems    []string `json:"problems,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

// Block is a blocked user in the answer of /v1/blocks.
type Block struct {
	User  string `json:"user"`
	Until Time   `json:"until"`
}
