// Package endvoicesession implements the tool end_voice_session.
package endvoicesession

import (
	"context"
	"strings"

	"voicegw/registry"
)

// Needs are the capabilities of end_voice_session: none.
type Needs struct{}

// Execute requests the end of the session: after the farewell has been heard, or without one after the current turn.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	answer := Output{Reason: OutputReason(call.Args.Reason), EndsAfter: OutputEndsAfterCurrentTurn}
	if call.Args.FarewellMessage != nil {
		answer.FarewellMessage = strings.TrimSpace(*call.Args.FarewellMessage)
	}
	if answer.FarewellMessage != "" {
		answer.EndsAfter = OutputEndsAfterFarewellSpoken
	}
	return registry.Result{Data: answer, Intents: []registry.Intent{registry.EndVoiceSession(registry.EndAfter(answer.EndsAfter))}}, nil
}
