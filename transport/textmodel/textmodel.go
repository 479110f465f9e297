// Package textmodel defines a model that answers text, prompts in, answers and tool calls out, and implements it over
// streamed Chat Completions (developers.openai.com/api/docs/api-reference/chat, read 2026-11-21), as OpenAI and
// compatible servers serve them.
package textmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"voicegw/transport"
)

// Role is the author of a message.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a prompt.
type Message struct {
	Role   Role
	Text   string
	Parts  []Part          // the pieces of a user's message with images, in order, or nil; Text holds their texts
	Calls  []ToolCall      // the tool calls in an assistant's message
	CallID string          // the call that a message of RoleTool answers
	Extra  json.RawMessage // such as signatures, from the provider; goes back to the Model with the message
	Notice bool            // marks a message of RoleUser written by the gateway. The prompt adds the conversation's mark.
}

// Part is a text or an image.
type Part struct {
	Text   string
	Image  string // a data: or https: URL of at most a few MiB; empty for a text. The model's provider loads it.
	Detail string // the image's detail level as in Chat Completions; empty means the model's default
}

// ImageWord replaces images wherever a message is stored.
const ImageWord = "[image]"

// InWords returns a message's text with [ImageWord] for each image.
func InWords(text string, parts []Part) string {
	if len(parts) == 0 {
		return text
	}
	var all []string
	for _, p := range parts {
		if p.Image != "" {
			p.Text = ImageWord
		}
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// ToolCall is a tool call as the model made it.
type ToolCall struct {
	ID    string
	Name  string
	Args  json.RawMessage // unvalidated model output. In a Prompt it is always a JSON object.
	Extra json.RawMessage // provider-specific, as in Message
}

// Tool declares a tool to a model.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON Schema as Chat Completions define it
	Strict      *bool           // asks for arguments that match the schema exactly; nil means the provider's default
}

// Prompt is the input for one answer.
type Prompt struct {
	Messages []Message
	Tools    []Tool
	ToolsOff bool   // asks for an answer without tool calls
	User     string // a hash that identifies the user to the provider; may be empty
	// ToolChoice and Parallel are from the request; nil leaves them out.
	ToolChoice json.RawMessage
	Parallel   *bool
	// Settings and MaxOutput are from the request.
	Settings  map[string]json.RawMessage
	MaxOutput int
}

// Reply is a model's complete answer.
type Reply struct {
	Text    string
	Calls   []ToolCall
	Extra   json.RawMessage // goes into the Message made from the answer
	Usage   Usage
	Cut     bool // the answer reached the length limit
	Refused bool // the model or its filter refused; Text may say why
}

// Usage counts tokens. Cached is part of Input.
type Usage struct{ Input, Cached, Output int64 }

// Add returns u + v.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Cached + v.Cached, u.Output + v.Output}
}

// Minus returns u - v.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.Input - v.Input, u.Cached - v.Cached, u.Output - v.Output}
}

// Model is a text model. It is safe for concurrent use.
type Model interface {
	// Complete answers a prompt. It calls delta with each piece of text in order, on the calling goroutine. The error
	// is a *Error or the context's error.
	Complete(ctx context.Context, p Prompt, delta func(text string)) (Reply, error)
}

// Error is a failure of a model. It contains no key.
type Error struct {
	Kind       transport.Kind
	Status     int           // the HTTP status, or 0
	RetryAfter time.Duration // the wait that the provider asks for, or 0
	Begun      bool          // part of the answer had arrived
	Param      string        // the rejected field of the request for KindInvalid, if the provider names it
	Err        error
}

// Error returns the kind, the status and the cause.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("text model: %s (status %d): %v", e.Kind, e.Status, e.Err)
	}
	return fmt.Sprintf("text model: %s: %v", e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
