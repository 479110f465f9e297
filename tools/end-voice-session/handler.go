// Package endvoicesession is the tool end_voice_session: it ends its own session.
package endvoicesession

import (
	"context"
	"strings"

	"voicegw/registry"
)

// Needs are the capabilities of end_voice_session: none.
type Needs struct{}

// Answer is the data of a success.
type Answer struct {
	Reason          string            `json:"reason"`
	FarewellMessage string            `json:"farewell_message"`
	EndsAfter       registry.EndAfter `json:"ends_after"`
}

// Execute asks for the end: after the farewell was heard if there is one, otherwise after the
// current turn.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	answer := Answer{Reason: string(call.Args.Reason), EndsAfter: registry.EndAfterCurrentTurn}
	if call.Args.FarewellMessage != nil {
		answer.FarewellMessage = strings.TrimSpace(*call.Args.FarewellMessage)
	}
	if answer.FarewellMessage != "" {
		answer.EndsAfter = registry.EndAfterFarewellSpoken
	}
	return registry.Result{Data: answer, Intents: []registry.Intent{registry.EndVoiceSession(answer.EndsAfter)}}, nil
}
