package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"voicegw/internal/conversation"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/store"
)

// Jobs reports finished background jobs; *jobs.Runner implements it.
type Jobs interface {
	// OwedTo returns the finished jobs that have not been reported to a conversation.
	OwedTo(ctx context.Context, conversation string) ([]store.Job, error)
	// Told marks a job as reported.
	Told(ctx context.Context, id string) (first bool, err error)
}

// owedJobs returns the finished jobs to report in this turn. begin skips those in the conversation's notices.
func (t *turn) owedJobs(ctx context.Context) []store.Job {
	if t.a.opts.Jobs == nil || t.save == nil {
		return nil
	}
	all, err := t.a.opts.Jobs.OwedTo(ctx, t.conv.ID)
	if err != nil {
		t.a.opts.Logger.Warn("listing finished jobs failed; the next turn tries again", "conversation_id", t.conv.ID, "error", err)
		return nil
	}
	return slices.DeleteFunc(all, func(j store.Job) bool { return !conversation.Owned(j.User, t.conv.ID, t.req.User) })
}

func (t *turn) markJobs(ctx context.Context, owed []store.Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for _, j := range owed {
		if _, err := t.a.opts.Jobs.Told(ctx, j.ID); err != nil {
			t.a.opts.Logger.Warn("marking a job as reported failed; the next turn tries again", "conversation_id", t.conv.ID,
				"job", j.ID, "error", err)
		}
	}
}

// openApprovals returns the approved actions with unreported outcomes, for example after a crash.
func (t *turn) openApprovals(ctx context.Context) []store.Approval {
	if t.a.opts.Approvals == nil {
		return nil
	}
	all, err := t.a.opts.Approvals.OpenIn(ctx, t.conv.ID, time.Now())
	if err != nil {
		t.a.opts.Logger.Warn("listing approved actions failed; the next turn tries again", "conversation_id", t.conv.ID, "error", err)
		return nil
	}
	return slices.DeleteFunc(all, func(a store.Approval) bool {
		return a.Told || !conversation.Owned(a.User, t.conv.ID, t.req.User) || t.req.confirms(a.Question())
	})
}

func approvalNotice(mark prompts.Mark, a store.Approval) string {
	if a.Result != nil {
		return prompts.ApprovedNotice(a.Tool, a.Reference, mark.JSON(a.Result))
	}
	return prompts.UnknownNotice(a.Tool, a.Reference, a.ApprovedAt, a.Begun)
}

func (t *turn) markApprovals(ctx context.Context, open []store.Approval) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for _, a := range open {
		if err := t.a.opts.Approvals.Told(ctx, a); err != nil && !errors.Is(err, store.ErrChanged) {
			t.a.opts.Logger.Warn("marking an approval as reported failed; the next turn reports it again",
				"conversation_id", t.conv.ID, "reference", a.Reference, "error", err)
		}
	}
}

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
