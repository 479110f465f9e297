package execute

import (
	"context"
	"errors"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/prompts"
	"voicegw/store"
)

// Approvals lists a conversation's approved actions and records which were reported; *store.Approvals implements it.
type Approvals interface {
	OpenIn(ctx context.Context, conversation string, now time.Time) ([]store.Approval, error)
	Told(ctx context.Context, a store.Approval) error
}

// EndedJobs lists a conversation's finished, unreported jobs and records reports; *jobs.Runner implements it.
type EndedJobs interface {
	OwedTo(ctx context.Context, conversation string) ([]store.Job, error)
	Told(ctx context.Context, id string) (first bool, err error)
}

// Owed is a result that a conversation's model has not got.
type Owed struct {
	Reference, Notice string                      // Notice tells the model of it
	Question          string                      // the approved confirmation's name; empty for a job
	Told              func(context.Context) error // records that it was reported
}

// OwedApprovals returns the outcomes of a user's approved actions, for example after a crash. own is the mark that
// results must not contain. from may be nil.
func OwedApprovals(ctx context.Context, from Approvals, id string, who user.User, own prompts.Mark) (all []Owed, err error) {
	if from == nil {
		return nil, nil
	}
	open, err := from.OpenIn(ctx, id, time.Now())
	if err != nil {
		return nil, err
	}
	for _, a := range open {
		if a.Told || !conversation.Owned(a.User, id, who) {
			continue
		}
		notice := prompts.UnknownNotice(a.Tool, a.Reference, a.ApprovedAt, a.Begun)
		if a.Result != nil {
			notice = prompts.ApprovedNotice(a.Tool, a.Reference, own.JSON(a.Result))
		}
		all = append(all, Owed{a.Reference, notice, a.Question(), func(ctx context.Context) error {
			if err := from.Told(ctx, a); !errors.Is(err, store.ErrChanged) {
				return err
			}
			return nil
		}})
	}
	return all, nil
}

// OwedJobs returns the results of a user's finished jobs. from may be nil.
func OwedJobs(ctx context.Context, from EndedJobs, id string, who user.User, own prompts.Mark) (all []Owed, err error) {
	if from == nil {
		return nil, nil
	}
	ended, err := from.OwedTo(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, j := range ended {
		if conversation.Owned(j.User, id, who) {
			notice := prompts.JobNotice(j.Name, j.Tool, j.ID, own.JSON(j.Result))
			all = append(all, Owed{j.ID, notice, "", func(ctx context.Context) error { _, err := from.Told(ctx, j.ID); return err }})
		}
	}
	return all, nil
}
