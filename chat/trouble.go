package chat

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"voicegw/protocol"
	"voicegw/transport"
)

// modelFailed returns what the client is told about a failure of the model; nil if it has left.
func (t *turn) modelFailed(ctx context.Context, err error) *protocol.Error {
	if ctx.Err() != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errTurnTime):
			return noAnswer()
		case errors.Is(cause, errDraining):
			return &protocol.Error{Code: protocol.CodeDraining, Message: "The gateway is shutting down and could not finish this answer; send the message again, and another gateway goes on with it.", Retryable: true}
		}
		return nil
	}
	failed := &ModelError{Kind: transport.KindRetry}
	_ = errors.As(err, &failed) // otherwise the kind is unknown, and the failure may pass
	row := failed.Kind.Failure()
	t.a.opts.Logger.Log(ctx, row.Level, "the chat model failed", "conversation_id", t.conv.ID, "kind", row.Name, "error", err)
	// The provider's own words may contain keys, accounts and addresses, so they go only to the log.
	told := protocol.Error{Code: row.Code, Message: row.Words, Retryable: row.Later, RetryAfterMS: failed.RetryAfter.Milliseconds()}
	if name := t.settingOf(failed); name != "" {
		told = protocol.Error{Code: protocol.CodeSettingRefused, Message: "The model does not take " + name + " as it stands in the request.", Ref: name}
	}
	if failed.Kind == transport.KindInvalid && failed.Err != nil && t.req.hasImages() && strings.Contains(strings.ToLower(failed.Err.Error()), "image") {
		told = protocol.Error{Code: protocol.CodeSettingRefused, Message: "The model's provider does not take an image of the request, or cannot load it from its address.", Ref: "messages"}
	}
	return &told
}

// settingOf returns the client's own setting that the model has refused; empty if it is not one
// of those. If a server names no field, its words do.
func (t *turn) settingOf(failed *ModelError) string {
	if failed.Kind != transport.KindInvalid {
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
	return &protocol.Error{Code: protocol.CodeRefused, Message: "The model refused to answer; say it in other words."}
}
