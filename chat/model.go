package chat

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
	Role Role
	Text string
	// Parts are the pieces of a user's message with images, in order; Text holds their texts. Nil
	// for a message without images.
	Parts []Part
	// Calls are the tools that the assistant called in this message.
	Calls []ToolCall
	// CallID is the call that a message of RoleTool answers.
	CallID string
	// Extra holds what an assistant's message has beside text and calls, such as signatures. It is
	// JSON in the Model's own form, and goes back to the Model with the message.
	Extra json.RawMessage
	// notice means that a message of RoleUser holds the gateway's own words: it gets the
	// conversation's mark.
	notice bool
}

// Part is a piece of a user's message: a text or an image.
type Part struct {
	Text string
	// Image is the image's address, a data: or https: URL of at most a few MiB; empty for a text.
	// The model's provider loads it, the gateway does not.
	Image string
	// Detail is the level of detail for the image, as in Chat Completions; empty leaves it to the
	// model.
	Detail string
}

// imageWord replaces an image wherever a message is stored: images are not.
const imageWord = "[image]"

// inWords returns what was said, with a word in place of each image.
func inWords(text string, parts []Part) string {
	if len(parts) == 0 {
		return text
	}
	var all []string
	for _, p := range parts {
		if p.Image != "" {
			p.Text = imageWord
		}
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// ToolCall is a tool call as a model made it.
type ToolCall struct {
	ID   string
	Name string
	// Args is what the model wrote: it should be a JSON object, but has not been checked. In a Prompt
	// it is an object.
	Args json.RawMessage
	// Extra is the extra of the call, like Message.Extra.
	Extra json.RawMessage
}

// Tool declares a tool to a model.
type Tool struct {
	Name        string
	Description string
	// Parameters is its JSON Schema in the form of Chat Completions.
	Parameters json.RawMessage
	// Strict asks for arguments that follow the schema exactly; nil leaves it to the provider.
	Strict *bool
}

// Prompt is the input for a model's answer.
type Prompt struct {
	Messages []Message
	Tools    []Tool
	// ToolsOff asks for an answer without tool calls.
	ToolsOff bool
	// User is a hash that identifies the user to the provider; may be empty.
	User string
	// ToolChoice and Parallel are those of a Request; nil leaves them out.
	ToolChoice json.RawMessage
	Parallel   *bool
	// Settings and MaxOutput are those of a Request.
	Settings  map[string]json.RawMessage
	MaxOutput int
}

// Reply is a model's whole answer to a Prompt.
type Reply struct {
	Text  string
	Calls []ToolCall
	// Extra belongs to the Message that is made from the answer.
	Extra json.RawMessage
	Usage Usage
	// Cut is true if the answer ended at the model's length limit.
	Cut bool
	// Refused is true if the model or its filter refused to answer; Text may say why.
	Refused bool
}

// Usage counts tokens. Cached is a part of Input.
type Usage struct{ Input, Cached, Output int64 }

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Cached + v.Cached, u.Output + v.Output}
}

// Minus returns u without v.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.Input - v.Input, u.Cached - v.Cached, u.Output - v.Output}
}

// Model is a chat model. It may be used concurrently.
type Model interface {
	// Complete answers a prompt. It passes the text to delta as it arrives, in order, on the
	// calling goroutine. The error is a *ModelError, or ctx's.
	Complete(ctx context.Context, p Prompt, delta func(text string)) (Reply, error)
}

// ModelError is a failure of a model. It contains no key.
type ModelError struct {
	Kind transport.Kind
	// Status is the HTTP status; 0 without one.
	Status int
	// RetryAfter is how long the provider asks to wait; 0 if it says nothing.
	RetryAfter time.Duration
	// Begun is true if part of the answer had already arrived.
	Begun bool
	// Param is the field of the request that the provider does not accept, for KindInvalid; empty
	// if it names none.
	Param string
	Err   error
}

// Error returns the kind, the status and the cause.
func (e *ModelError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("chat model: %s (status %d): %v", e.Kind, e.Status, e.Err)
	}
	return fmt.Sprintf("chat model: %s: %v", e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *ModelError) Retryable() bool { return e.Kind.Retryable() }
