package registry

import (
	"context"
	"encoding/json"
	"fmt"
)

// Tools lets a tool call other tools of its session, by the same rules as a model's calls. It is available in
// every call, and refuses once the call is over.
type Tools interface {
	// Call calls a tool with arguments that encoding/json writes as an object (nil means none), and waits for its
	// answer. It counts against the turn's budget. It is refused beyond MaxNested calls or MaxDepth levels, for a
	// tool that is calling already, for one that writes if the caller does not, and with CONFIRMATION_REQUIRED for
	// one that a person must approve if nobody has approved the calling call. Its intents are not applied.
	Call(ctx context.Context, tool string, args any) Envelope
}

// The limits of calls within calls.
const (
	// MaxNested is how many calls one call of a model may lead to.
	MaxNested = 8
	// MaxDepth is how many calls may be within one another, that of the model included.
	MaxDepth = 3
)

// Into reads the data of an answer into v, or returns the error of one that has failed, for a handler to return:
// a *[ToolError] of the same type, but PERMANENT for a tool that a person must approve.
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
