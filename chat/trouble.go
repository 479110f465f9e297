package chat

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"voicegw/protocol"
	"voicegw/protocol/errcode"
)

// troubles holds what the client is told about a failure of the model, by its kind. ErrorKind
// decides whether the same message may succeed later. The provider's own words may contain keys,
// accounts and addresses, so they go only to the log.
var troubles = map[ErrorKind]protocol.Error{
	KindAuth:        {Code: errcode.ProviderAuth, Message: "The model's provider does not accept this gateway's key; its operator must look into it."},
	KindRequest:     {Code: errcode.ProviderError, Message: "The model does not accept this gateway's request; its operator must look into it."},
	KindRateLimit:   {Code: errcode.ProviderBusy, Message: "The model takes no more requests at the moment; try again soon.", Retryable: true},
	KindQuota:       {Code: errcode.ProviderQuota, Message: "This gateway's quota at the model's provider is used up; its operator must look into it."},
	KindTooLong:     {Code: errcode.TooLong, Message: "The conversation is longer than the model takes; begin a new one, or send less of it."},
	KindFiltered:    {Code: errcode.ContentFilter, Message: "The filter of the model's provider does not let this conversation through; say it in other words."},
	KindUnavailable: {Code: errcode.ProviderUnavailable, Message: "The model cannot be reached at the moment; try again soon.", Retryable: true},
	KindProtocol:    {Code: errcode.ProviderAnswer, Message: "The model's answer cannot be read; its operator must look into it."},
}

// modelFailed returns what the client is told about a failure of the model; nil if it has left.
func (t *turn) modelFailed(ctx context.Context, err error) *protocol.Error {
	if ctx.Err() != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errTurnTime):
			return noAnswer()
		case errors.Is(cause, errDraining):
			return &protocol.Error{Code: errcode.Draining, Message: "The gateway is shutting down and could not finish this answer; send the message again, and another gateway goes on with it.", Retryable: true}
		}
		return nil
	}
	failed := &ModelError{Kind: KindUnavailable}
	_ = errors.As(err, &failed) // otherwise the kind is unknown, and the failure may pass
	t.a.opts.Logger.Warn("the chat model failed", "conversation_id", t.conv.ID, "kind", string(failed.Kind), "error", err)
	told, known := troubles[failed.Kind]
	if !known {
		told = troubles[KindRequest]
	}
	told.RetryAfterMS = failed.RetryAfter.Milliseconds()
	if name := t.settingOf(failed); name != "" {
		told = protocol.Error{Code: errcode.SettingRefused, Message: "The model does not take " + name + " as it stands in the request.", Ref: name}
	}
	if failed.Kind == KindRequest && failed.Err != nil && t.req.hasImages() && strings.Contains(strings.ToLower(failed.Err.Error()), "image") {
		told = protocol.Error{Code: errcode.SettingRefused, Message: "The model's provider does not take an image of the request, or cannot load it from its address.", Ref: "messages"}
	}
	return &told
}

// settingOf returns the client's own setting that the model has refused; empty if it is not one
// of those. If a server names no field, its words do.
func (t *turn) settingOf(failed *ModelError) string {
	if failed.Kind != KindRequest {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(t.req.Settings)) {
		root, _, _ := strings.Cut(failed.Param, ".")
		if root == name || failed.Param == "" && strings.Contains(failed.Err.Error(), name) {
			return name
		}
	}
	return ""
}

// refused returns what the client is told if the model refused to answer without a word.
func refused() *protocol.Error {
	return &protocol.Error{Code: errcode.Refused, Message: "The model refused to answer; say it in other words."}
}
