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

// recall adds the questions that earlier turns have left open to the book, so that the same call
// gets the same question, not a second one. The conversation stores them as the answers that the
// model got, without their tokens, which are secrets. The model knows their references, and the
// store finds them by name.
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
			if ends, err := time.Parse(time.RFC3339, q.ExpiresAt); err == nil && time.Now().Before(ends) && t.a.opts.Executor.Fate(ctx, c.Question) == execute.FateOpen {
				t.calls.Recall(env, e.Turn)
			}
		}
	}
}

// tellUnapproved tells the model, once, about questions of earlier turns that were declined over
// the API, or that expired.
func (t *turn) tellUnapproved(ctx context.Context) {
	for _, e := range t.conv.Entries {
		if e.Side != conversation.SideText {
			continue // a voice session tells its own model
		}
		for _, c := range e.Calls {
			reference, ends := question(c)
			if reference == "" || t.conv.Told(reference) || t.confirms(c.Question) {
				continue
			}
			switch t.a.opts.Executor.Fate(ctx, c.Question) {
			case execute.FateDeclined:
				t.noted(prompts.DeclinedNotice(c.Tool, reference))
			case execute.FateExpired:
				t.noted(prompts.ExpiredNotice(c.Tool, reference))
			case execute.FateForgotten:
				if !time.Now().Before(ends) {
					t.noted(prompts.ExpiredNotice(c.Tool, reference))
				}
			}
		}
	}
}

// confirms reports whether the message answers the question with that name.
func (t *turn) confirms(name string) bool {
	return t.req.Confirmation != nil && store.QuestionName(t.req.Confirmation.Token) == name
}

// question returns the reference and the expiry of the question that a call has put; the
// reference is empty if the call has put none.
func question(c conversation.Call) (reference string, ends time.Time) {
	var env registry.Envelope
	if c.Question == "" || json.Unmarshal(c.Envelope, &env) != nil || env.Error == nil || env.Error.ConfirmationRequest == nil || env.Meta.CacheHit {
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

// resume restores what the conversation has stored of earlier turns. If the user says something
// in this turn, it gets a new budget. An answer to a question continues with the budget of the
// turn before; otherwise a model could ask for ever.
func (t *turn) resume() {
	if err := t.calls.Book().Resume(t.conv.Policy); err != nil {
		t.a.opts.Logger.Warn("the questions of earlier turns are not counted", "conversation_id", t.conv.ID, "error", err)
	}
	if t.req.Confirmation == nil {
		t.calls.Book().BeginTurn()
	}
}

// askedBefore tells the book how the questions of earlier turns ended: answered in this turn or
// over the API, expired, or so old that the store has forgotten them.
func (t *turn) askedBefore(ctx context.Context) {
	t.calls.Book().Unapproved(func(tool, name string) {
		switch t.a.opts.Executor.Fate(ctx, name) {
		case execute.FateApproved:
			t.calls.Book().Approved(tool, name)
		case execute.FateDeclined, execute.FateExpired:
			t.calls.Book().Resolved(name)
		case execute.FateForgotten:
			t.calls.Book().Forget(name)
		}
	})
}
