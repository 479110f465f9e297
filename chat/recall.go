package chat

import (
	"context"
	"encoding/json"
	"time"

	"voicegw/internal/conversation"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/store"
)

// recall adds the open approval requests of earlier turns to the book, so that repeating a call doesn't ask again. The
// conversation has them without their secret tokens.
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
			if ends, err := time.Parse(time.RFC3339, q.ExpiresAt); err == nil && time.Now().Before(ends) &&
				t.a.opts.Executor.QuestionState(ctx, c.Question) == execute.QuestionOpen {
				t.calls.Recall(env, e.Turn)
			}
		}
	}
}

// tellUnapproved reports, once, the approval requests of earlier turns that expired or were declined over the API.
func (t *turn) tellUnapproved(ctx context.Context) {
	for _, e := range t.conv.Entries {
		if e.Side != conversation.SideText {
			continue // the voice session reports it to its own model
		}
		for _, c := range e.Calls {
			reference, ends := question(c)
			if reference == "" || t.conv.HasOutcome(reference) || t.req.confirms(c.Question) {
				continue
			}
			switch t.a.opts.Executor.QuestionState(ctx, c.Question) {
			case execute.QuestionDeclined:
				t.noted(prompts.DeclinedNotice(c.Tool, reference))
			case execute.QuestionExpired:
				t.noted(prompts.ExpiredNotice(c.Tool, reference))
			case execute.QuestionUnknown:
				if !time.Now().Before(ends) {
					t.noted(prompts.ExpiredNotice(c.Tool, reference))
				}
			}
		}
	}
}

func (r *Request) confirms(name string) bool {
	return r.Confirmation != nil && store.QuestionName(r.Confirmation.Token) == name
}

// question returns the reference and expiry of a call's approval request; an empty reference if it made none.
func question(c conversation.Call) (reference string, ends time.Time) {
	var env registry.Envelope
	if c.Question == "" || json.Unmarshal(c.Envelope, &env) != nil || env.Error == nil ||
		env.Error.ConfirmationRequest == nil || env.Meta.CacheHit {
		return "", ends
	}
	var details struct {
		Reference string `json:"reference"`
	}
	raw, _ := json.Marshal(env.Error.Details) // it was just parsed
	if json.Unmarshal(raw, &details) != nil {
		return "", ends
	}
	ends, err := time.Parse(time.RFC3339, env.Error.ConfirmationRequest.ExpiresAt)
	if err != nil {
		return "", ends
	}
	return details.Reference, ends
}

// resume restores the book of earlier turns. An approval continues their budget, or a model could keep asking.
func (t *turn) resume() {
	if err := t.calls.Book().Resume(t.conv.Policy); err != nil {
		t.a.opts.Logger.Warn("restoring the approval requests of earlier turns failed", "conversation_id", t.conv.ID, "error", err)
	}
	if t.req.Confirmation == nil {
		t.calls.Book().BeginTurn()
	}
}

// askedBefore records in the book how the approval requests of earlier turns ended.
func (t *turn) askedBefore(ctx context.Context) {
	t.calls.Book().Unapproved(func(tool, name string) {
		switch t.a.opts.Executor.QuestionState(ctx, name) {
		case execute.QuestionApproved:
			t.calls.Book().Approved(tool, name)
		case execute.QuestionDeclined, execute.QuestionExpired:
			t.calls.Book().Resolved(name)
		case execute.QuestionUnknown:
			t.calls.Book().Forget(name)
		}
	})
}
