package jobs

import (
	"context"
	"errors"
	"time"

	"voicegw/internal/audit"
	"voicegw/store"
)

// List returns the matching jobs, oldest first, without payloads and results. An empty name matches all.
func (r *Runner) List(user, conversation string) []store.Job {
	all, _ := r.opts.Keep.List()
	var list []store.Job
	for _, j := range all {
		if (user == "" || j.User == user) && (conversation == "" || j.Conversation == conversation) {
			list = append(list, j)
		}
	}
	return list
}

// Job returns a job with its result. The error is store.ErrUnknown or wraps store.ErrUnavailable.
func (r *Runner) Job(ctx context.Context, id string) (store.Job, error) {
	return r.opts.Keep.Load(ctx, id)
}

// OwedTo returns the ended jobs not yet reported to a conversation, in the order they ended. The error wraps
// store.ErrUnavailable.
func (r *Runner) OwedTo(ctx context.Context, conversation string) ([]store.Job, error) {
	var owed []store.Job
	for _, j := range r.List("", conversation) {
		if !j.Owed() {
			continue
		}
		whole, err := r.opts.Keep.Load(ctx, j.ID)
		switch {
		case errors.Is(err, store.ErrUnknown):
		case err != nil:
			return nil, err
		case whole.Owed():
			owed = append(owed, whole)
		}
	}
	return owed, nil
}

// change applies a rule to a job, and retries when another writer changed it in between. ok is the rule's.
func (r *Runner) change(
	ctx context.Context, id string, rule func(store.Job, time.Time) (store.Job, bool),
) (j store.Job, ok bool, err error) {
	for {
		if j, err = r.opts.Keep.Load(ctx, id); err != nil {
			return j, false, err
		}
		next, ok := rule(j, time.Now())
		if !ok {
			return j, false, nil
		}
		if j, err = r.opts.Keep.Save(ctx, next); !errors.Is(err, store.ErrChanged) {
			return j, err == nil, err
		}
		if ctx.Err() != nil {
			return j, false, ctx.Err()
		}
	}
}

// Told records that a job's end was reported to its conversation. If several callers record it, only one gets true. The
// error is store.ErrUnknown or wraps store.ErrUnavailable.
func (r *Runner) Told(ctx context.Context, id string) (first bool, err error) {
	j, ok, err := r.change(ctx, id, reported)
	if ok {
		r.record(audit.EventJobTold, j, failure(j))
	}
	return ok, err
}

// Cancel stops an unfinished job wherever it runs; its conversation gets no report. was is false if the job had already
// ended. by names the requester, for the log. The error is store.ErrUnknown or wraps store.ErrUnavailable.
func (r *Runner) Cancel(ctx context.Context, id, by string) (j store.Job, was bool, err error) {
	j, was, err = r.change(ctx, id, cancel)
	if was {
		r.record(audit.EventJobCancelled, j, "")
		r.opts.Logger.Info("job cancelled", "job", id, "tool", j.Tool, "by", by)
		r.look()
		if r.opts.Ended != nil {
			r.opts.Ended(j)
		}
	}
	return j, was, err
}
