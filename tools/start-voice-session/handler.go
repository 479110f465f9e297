// Package startvoicesession implements the tool start_voice_session.
package startvoicesession

import (
	"context"
	"errors"
	"strings"

	"voicegw/registry"
)

// Needs are the capabilities of start_voice_session.
type Needs struct {
	VoiceSessions registry.VoiceSessions
	Inviter       registry.Inviter
}

// Execute creates a voice session and invites the client to it. The ticket is only for the client, so the answer
// omits it.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	offer, err := call.Needs.VoiceSessions.Offer(ctx, registry.VoiceRequest{
		UserID: call.Session.UserID, Vouched: call.Session.Vouched, Scopes: call.Session.Scopes,
		ConversationID: call.Session.ConversationID, Agent: call.Session.Agent,
		PendingRequest: strings.TrimSpace(call.Args.PendingRequest), Said: call.Needs.Inviter.Said(),
		Origin: call.Needs.Inviter.Origin(), Guarantor: call.Needs.Inviter.Guarantor(),
	})
	if err != nil {
		return registry.Result{}, offerError(err)
	}
	call.Needs.Inviter.Invite(offer)
	return registry.Result{Data: Output{
		SessionID: offer.SessionID, PendingRequest: offer.PendingRequest,
		ExpiresAt: offer.ExpiresAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
	}}, nil
}

// offerError converts a failure to an error for the model.
func offerError(err error) error {
	e := &registry.ToolError{Err: err}
	switch {
	case errors.Is(err, registry.ErrVoiceActive):
		e.Type, e.Message = registry.ErrorSessionActive, "This conversation already has a voice session."
		e.Suggestion = "Do not call it again; the user can simply speak."
	case errors.Is(err, registry.ErrUser):
		e.Type, e.Message = registry.ErrorSessionInactive, "This conversation has no known user to invite."
		e.Suggestion = "Continue in text."
	case errors.Is(err, registry.ErrFull):
		e.Type, e.Message, e.Retryable = registry.ErrorRateLimit, "Too many invitations are open.", true
		e.Suggestion = "Continue in text and try again in a minute."
	default:
		e.Type, e.Message, e.Retryable = registry.ErrorTransient, "The invitation could not be created.", true
		e.Suggestion = "Try once more, or continue in text."
	}
	return e
}
