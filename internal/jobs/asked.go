package jobs

import (
	"context"
	"errors"
	"time"

	"voicegw/internal/audit"
	"voicegw/store"
)

// List returns the jobs that match, the oldest first, without payloads and results. Empty names match all.
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

// OwedTo returns the jobs that have ended and of which a conversation has not been told, the one that ended
// first being first. The error wraps store.ErrUnavailable.
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

// change applies a rule to a job until nobody else has changed it meanwhile. ok is that of the rule.
func (r *Runner) change(ctx context.Context, id string, rule func(store.Job, time.Time) (store.Job, bool)) (j store.Job, ok bool, err error) {
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

// Told notes that the conversation of a job was told of its end; of several who note it one gets true. The
// error is store.ErrUnknown or wraps store.ErrUnavailable.
func (r *Runner) Told(ctx context.Context, id string) (first bool, err error) {
	j, ok, err := r.change(ctx, id, told)
	if ok {
		r.record(audit.EventJobTold, j, failure(j))
	}
	return ok, err
}

// Cancel ends a job that is under way: its work is stopped wherever it runs, and its conversation is told
// nothing more. was is false if the job is over already. by says who wants it, for the audit. The error is
// store.ErrUnknown or wraps store.ErrUnavailable.
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
