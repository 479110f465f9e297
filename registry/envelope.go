package registry

import (
	"encoding/json"
	"fmt"
	"time"
)

// ResponseSchemaVersion is the version of the envelope's own form.
const ResponseSchemaVersion = "1.0.0"

// ErrorType classes a tool's failure for the model and the audit.
type ErrorType string

// The error types of the registry itself. Others come with the orchestrator's
// policy and with handlers.
const (
	ErrorNotFound ErrorType = "NOT_FOUND"
)

// Envelope is a tool's answer: data when OK, an error otherwise, and what ran.
type Envelope struct {
	OK    bool            `json:"ok"`
	Data  json.RawMessage `json:"data,omitempty"`
	Error *Error          `json:"error,omitempty"`
	Meta  Meta            `json:"meta"`
}

// Error tells a model what went wrong, in words it may act on.
type Error struct {
	Type       ErrorType `json:"type"`
	Message    string    `json:"message"`
	Retryable  bool      `json:"retryable"`
	Suggestion string    `json:"suggestion,omitempty"`
}

// Meta says what ran and how long.
type Meta struct {
	Tool                  string `json:"tool"`
	RegistryVersion       string `json:"registryVersion"`
	DurationMS            int64  `json:"duration"`
	ResponseSchemaVersion string `json:"responseSchemaVersion"`
}

// NotFound is the answer to a call of a tool that does not exist.
func NotFound(tool, registryVersion string, took time.Duration) Envelope {
	return Envelope{
		Error: &Error{
			Type:       ErrorNotFound,
			Message:    fmt.Sprintf("There is no tool named %q.", tool),
			Suggestion: "Answer the user without it.",
		},
		Meta: Meta{Tool: tool, RegistryVersion: registryVersion,
			DurationMS: took.Milliseconds(), ResponseSchemaVersion: ResponseSchemaVersion},
	}
}
