package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Role is whose message it is.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of what a model is given.
type Message struct {
	Role Role
	Text string
	// Parts are the pieces of a user's message that has images, in their order; Text holds
	// their texts. Nil for a message without an image.
	Parts []Part
	// Calls are the tools that the assistant called in this message.
	Calls []ToolCall
	// CallID is the call that a message of RoleTool answers.
	CallID string
	// Extra is what came with an assistant's message beside its text and calls, such as
	// signatures: JSON of the Model's own, which it is given back with the message.
	Extra json.RawMessage
	// notice says that a message of RoleUser is the gateway's own: it goes to the model
	// under the mark of the conversation.
	notice bool
}

// Part is a piece of a user's message: a text or an image.
type Part struct {
	Text string
	// Image is the image's address, a data: or https: URL of at most a few MiB; empty for a
	// text. The model's provider reads it, and the gateway loads nothing.
	Image string
	// Detail is how closely the image is to be looked at, as Chat Completions has it; empty
	// leaves it to the model.
	Detail string
}

// imageWord stands for an image wherever a message is kept: the image itself is not.
const imageWord = "[image]"

// inWords is what was said, with a word in place of each image.
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
	// Args is what the model wrote: meant to be a JSON object, but not checked.
	Args json.RawMessage
	// Extra is what came with the call, as Message.Extra.
	Extra json.RawMessage
}

// Tool declares a tool to a model.
type Tool struct {
	Name        string
	Description string
	// Parameters is its JSON Schema in the form of Chat Completions.
	Parameters json.RawMessage
	// Strict asks for arguments that keep to the schema; nil says nothing of it.
	Strict *bool
}

// Prompt is what a model is asked to go on from.
type Prompt struct {
	Messages []Message
	Tools    []Tool
	// ToolsOff asks for an answer without tool calls.
	ToolsOff bool
	// User names the user to the provider, hashed; empty for nobody.
	User string
	// ToolChoice and Parallel are those of a Request; nil says nothing of them.
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
	// Extra is for the Message that is made of the answer.
	Extra json.RawMessage
	Usage Usage
	// Cut says that the answer ended at the model's length limit.
	Cut bool
	// Refused says that the model or its filter would not answer; Text may say why.
	Refused bool
}

// Usage counts tokens. Cached ones are a subset of Input.
type Usage struct{ Input, Cached, Output int64 }

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Cached + v.Cached, u.Output + v.Output}
}

// Model is a chat model. It may be used by any number of goroutines.
type Model interface {
	// Complete answers a prompt. delta is given the text as it comes, in order, from the
	// calling goroutine. The error is a *ModelError, or ctx's.
	Complete(ctx context.Context, p Prompt, delta func(text string)) (Reply, error)
}

// ErrorKind classes what goes wrong with a model.
type ErrorKind string

// The kinds.
const (
	KindAuth        ErrorKind = "auth"        // the key is wrong or may not
	KindRequest     ErrorKind = "request"     // the request is one that it does not take
	KindRateLimit   ErrorKind = "rate_limit"  // too much in a short time
	KindQuota       ErrorKind = "quota"       // what was paid for is used up
	KindTooLong     ErrorKind = "too_long"    // the conversation is longer than the model takes
	KindFiltered    ErrorKind = "filtered"    // its filter takes no such question
	KindUnavailable ErrorKind = "unavailable" // overloaded, unreachable, broken off
	KindProtocol    ErrorKind = "protocol"    // its answer cannot be read, or is over a limit
)

// ModelError is a failure of a model. It names no key.
type ModelError struct {
	Kind ErrorKind
	// Status is the HTTP status, 0 where there was none.
	Status int
	// RetryAfter is what the provider asks for; 0 where it says nothing.
	RetryAfter time.Duration
	// Begun says that a part of the answer had come already.
	Begun bool
	// Param is the field of the request that the provider does not take, of KindRequest;
	// empty where it names none.
	Param string
	Err   error
}

// Error is the kind, the status and the cause.
func (e *ModelError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("chat model: %s (status %d): %v", e.Kind, e.Status, e.Err)
	}
	return fmt.Sprintf("chat model: %s: %v", e.Kind, e.Err)
}

// Unwrap is the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// Retryable says whether the same request may succeed later.
func (e *ModelError) Retryable() bool { return e.Kind == KindRateLimit || e.Kind == KindUnavailable }
