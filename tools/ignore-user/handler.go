// Package ignoreuser implements the tool ignore_user.
package ignoreuser

import (
	"context"
	"errors"
	"strings"
	"time"

	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Needs are the capabilities of ignore_user.
type Needs struct {
	Blocks    registry.Blocks
	Messenger registry.Messenger
}

// Execute saves the block, notifies the client, and ends the session once the farewell has been heard. If the block
// cannot be saved, the client gets nothing.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	farewell := strings.TrimSpace(call.Args.FarewellMessage)
	if textutil.IsBlank(farewell) {
		return registry.Result{}, registry.Invalid(
			[]document.Problem{{Path: "/farewell_message", Message: "Give a farewell to the user."}}, "The farewell_message is blank.")
	}
	duration := time.Duration(call.Args.DurationSeconds) * time.Second
	until := call.Session.Now.Add(duration).Truncate(time.Millisecond).UTC()
	err := call.Needs.Blocks.Block(ctx, call.Session.UserID, until)
	switch {
	case errors.Is(err, registry.ErrUser):
		return registry.Result{}, &registry.ToolError{
			Type: registry.ErrorSessionInactive, Message: "This conversation has no known user to block.",
			Suggestion: "End the conversation by saying so.", Err: err,
		}
	case err != nil:
		return registry.Result{}, &registry.ToolError{
			Type: registry.ErrorTransient, Message: "The block could not be saved; nothing happened.", Retryable: true,
			Suggestion: "Try once more, or end the conversation by saying so.", Err: err,
		}
	}
	call.Needs.Messenger.Timeout(until, duration, farewell)
	return registry.Result{
		Data: Output{
			BlockedUntil:    until.Format("2006-01-02T15:04:05.000Z07:00"),
			DurationSeconds: call.Args.DurationSeconds,
			FarewellMessage: farewell,
		},
		Intents: []registry.Intent{
			registry.EndVoiceSession(registry.EndAfterFarewellSpoken),
			registry.SuppressAudio(true), // takes effect after the farewell
		},
	}, nil
}
