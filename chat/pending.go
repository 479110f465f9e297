package chat

import (
	"context"
	"errors"
	"slices"
	"time"

	"voicegw/internal/conversation"
	"voicegw/prompts"
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

func jobNotice(mark prompts.Mark, j store.Job) string {
	return prompts.JobNotice(j.Name, j.Tool, j.ID, mark.JSON(j.Result))
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
