package chat

import (
	"context"
	"encoding/json"
	"time"

	"voicegw/registry"
)

// recall tells the book of questions that earlier turns have left open: whoever calls the
// same again gets the same question and no second one. They stand in the conversation as
// the answers that the model was given, without their tokens, which are secrets: the model
// has the reference in them, and the store finds them by name.
func (t *turn) recall(ctx context.Context) {
	for _, e := range t.conv.Entries {
		for _, c := range e.Calls {
			if c.Question == "" || c.Envelope == nil {
				continue
			}
			var env registry.Envelope
			if json.Unmarshal(c.Envelope, &env) != nil || env.Error == nil || env.Error.ConfirmationRequest == nil || env.Meta.CacheHit {
				continue
			}
			q := env.Error.ConfirmationRequest
			if ends, err := time.Parse(time.RFC3339, q.ExpiresAt); err == nil && time.Now().Before(ends) && t.a.opts.Executor.Open(ctx, c.Question) {
				t.book.Recall(env, e.Turn)
			}
		}
	}
}
