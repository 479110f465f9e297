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

// modelFailed returns the client's error for a failure of the model; nil if the client has left.
func (t *turn) modelFailed(ctx context.Context, err error) *protocol.Error {
	if ctx.Err() != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errTurnTime):
			return noAnswer()
		case errors.Is(cause, errDraining):
			return &protocol.Error{Code: protocol.CodeDraining,
				Message: "The gateway is shutting down and could not finish this answer. Send the message again, and another " +
					"gateway will continue it.", Retryable: true}
		}
		return nil
	}
	failed := &ModelError{Kind: transport.KindRetry}
	_ = errors.As(err, &failed) // otherwise unknown and possibly temporary
	row := failed.Kind.Failure()
	t.a.opts.Logger.Log(ctx, row.Level, "the chat model failed", "conversation_id", t.conv.ID, "kind", row.Name, "error", err)
	// Provider messages may contain keys, accounts and addresses, so they go only to the log.
	failure := protocol.Error{Code: row.Code, Message: row.Words, Retryable: row.Later, RetryAfterMS: failed.RetryAfter.Milliseconds()}
	if name := t.req.settingOf(failed); name != "" {
		failure = protocol.Error{Code: protocol.CodeSettingRefused, Message: "The model rejects the value of " + name +
			" in the request.", Ref: name}
	}
	if failed.Kind == transport.KindInvalid && failed.Err != nil && t.req.hasImages() &&
		strings.Contains(strings.ToLower(failed.Err.Error()), "image") {
		failure = protocol.Error{Code: protocol.CodeSettingRefused,
			Message: "The model's provider rejected an image in the request, or could not load it from its URL.", Ref: "messages"}
	}
	return &failure
}

// settingOf returns the client's setting that the model rejected, or an empty string.
func (r *Request) settingOf(failed *ModelError) string {
	if failed.Kind != transport.KindInvalid {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		root, _, _ := strings.Cut(failed.Param, ".")
		if root == name || failed.Param == "" && strings.Contains(failed.Err.Error(), name) {
			return name
		}
	}
	return ""
}

func refused() *protocol.Error {
	return &protocol.Error{Code: protocol.CodeRefused, Message: "The model refused to answer. Rephrase the message."}
}
