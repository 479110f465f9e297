package registry

import (
	"context"
	"encoding/json"
	"fmt"
)

// Tools lets a tool call other tools of its session, with the rules for a model's calls. It is available in every
// call, and refuses calls after the call.
type Tools interface {
	// Call calls a tool with arguments that encode to a JSON object (nil means none), and waits for its answer. It
	// counts against the turn's budget. It refuses more than MaxNested calls or MaxDepth levels, recursion, and a
	// tool that writes if the caller doesn't. A tool that requires approval gets CONFIRMATION_REQUIRED unless the
	// calling call was approved. Intents of the called tool are not applied.
	Call(ctx context.Context, tool string, args any) Envelope
}

// Limits of nested calls.
const (
	// MaxNested limits the nested calls of a model's call.
	MaxNested = 8
	// MaxDepth limits the nesting, including the model's call.
	MaxDepth = 3
)

// Into decodes the answer's data into v, or returns the failure as an error for the handler to return: a *[ToolError]
// of the same type, but PERMANENT for a tool that requires approval.
func (e Envelope) Into(v any) error {
	if e.OK {
		if err := json.Unmarshal(e.Data, v); err != nil {
			return fmt.Errorf("registry: the answer of %s cannot be read: %w", e.Meta.Tool, err)
		}
		return nil
	}
	told := e.Error
	if told == nil {
		told = &Error{Type: ErrorInternal}
	}
	failed := &ToolError{
		Type: told.Type, Message: told.Message, Retryable: told.Retryable, PartialSideEffects: told.PartialSideEffects,
		Repeatable: told.Repeatable, Suggestion: told.Suggestion,
	}
	if told.Details != nil {
		failed.Details = told.Details
	}
	if failed.Type == ErrorConfirmationRequired {
		failed.Type = ErrorPermanent
	}
	return failed
}
