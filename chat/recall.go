package chat

import (
	"context"
	"encoding/json"
	"time"

	"voicegw/conversation"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/store"
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
			if ends, err := time.Parse(time.RFC3339, q.ExpiresAt); err == nil && time.Now().Before(ends) && t.a.opts.Executor.Fate(ctx, c.Question) == execute.FateOpen {
				t.calls.Recall(env, e.Turn)
			}
		}
	}
}

// tellUnapproved tells the model, once, of questions of earlier turns that were declined over
// the API, or that nobody has answered in time.
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

// confirms says whether the message is the user's answer to the question of that name.
func (t *turn) confirms(name string) bool {
	return t.req.Confirmation != nil && store.QuestionName(t.req.Confirmation.Token) == name
}

// question is the reference of the question that a call has put, and when it ends; empty if it
// has put none.
func question(c conversation.Call) (reference string, ends time.Time) {
	var env registry.Envelope
	if c.Question == "" || json.Unmarshal(c.Envelope, &env) != nil || env.Error == nil || env.Error.ConfirmationRequest == nil || env.Meta.CacheHit {
		return "", ends
	}
	var details struct {
		Reference string `json:"reference"`
	}
	raw, _ := json.Marshal(env.Error.Details) // it has just been read
	if json.Unmarshal(raw, &details) != nil {
		return "", ends
	}
	ends, err := time.Parse(time.RFC3339, env.Error.ConfirmationRequest.ExpiresAt)
	if err != nil {
		return "", ends
	}
	return details.Reference, ends
}

// resume takes up what the conversation has kept of earlier turns. What the user says in this
// one gives it a budget of its own; their answer to a question goes on with that of the turn
// before, or a model could ask for ever.
func (t *turn) resume() {
	if err := t.calls.Book().Resume(t.conv.Policy); err != nil {
		t.a.opts.Logger.Warn("the questions of earlier turns are not counted", "conversation_id", t.conv.ID, "error", err)
	}
	if t.req.Confirmation == nil {
		t.calls.Book().BeginTurn()
	}
}

// askedBefore tells the book what has become of the questions of earlier turns: answered by
// this turn or over the API, expired, or so long ago that nothing is left of them.
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
