package execute

import (
	"context"
	"time"

	"voicegw/orchestrator/policy"
	"voicegw/registry"
)

// Job is a call that may run.
type Job struct {
	// Call is the gateway's name of it, unique in the conversation.
	Call     string
	Turn     int
	Prepared *registry.Prepared
	Keys     policy.Keys
	// Message names the call in a message that may be sent again: where the tool has no
	// business key, the same name is the same deed, whatever the model calls it then. A tool
	// that writes finishes although the conversation is over, for whoever sends the message
	// again. Empty for a call that no message repeats.
	Message string
	// Approved says that a person has approved it: it runs although the conversation may
	// be over by now.
	Approved bool
}

// finishes says that a call goes on once it has begun, also for somebody who has left.
func (j Job) finishes() bool {
	return j.Message != "" && j.Prepared.Tool().SideEffects == registry.SideEffectsWrites
}

// Result is what came of a Job.
type Result struct {
	Call     string
	Envelope registry.Envelope
	// BegunAt is when the handler began; zero if it did not.
	BegunAt time.Time
}

// Run lets a call run, at most four of a conversation at a time and others after them,
// in the order of Run. Finished is told.
func (c *Calls) Run(j Job) {
	ctx, cancel := context.WithCancelCause(c.e.ctx())
	c.mu.Lock()
	c.cancels[j.Call] = &running{cancel: cancel, cancellable: j.Prepared.Tool().Cancellable && !j.Approved && !j.finishes()}
	p := c.line.join()
	c.mu.Unlock()
	c.begin(j.Prepared.Tool().ToolID, func() {
		r := c.inTurn(ctx, j, p, cancel)
		c.mu.Lock()
		delete(c.cancels, j.Call)
		c.line.leave(p)
		c.mu.Unlock()
		cancel(nil)
		c.c.Finished(r)
	})
}

// inTurn runs the call when its place is free.
func (c *Calls) inTurn(ctx context.Context, j Job, p *place, cancel context.CancelCauseFunc) Result {
	var over <-chan struct{} // never, for what a person has approved
	if !j.Approved {
		over = c.over().Done()
	}
	select {
	case <-p.free:
	case <-ctx.Done():
	case <-over:
	}
	if !j.Approved && c.over().Err() != nil {
		cancel(errOver) // what has not begun does not begin, free place or not
	}
	session := c.c.Session
	session.Turn, session.Now = j.Turn, time.Now().UTC()
	env, begunAt := c.e.run(ctx, j, session, c.c.Capabilities)
	return Result{Call: j.Call, Envelope: env, BegunAt: begunAt}
}

// run executes a call whose turn has come, and says when its handler began. One that
// writes is entered in the ledger first, and is not run where it stands there already.
func (e *Executor) run(ctx context.Context, j Job, session registry.Session, caps []any) (env registry.Envelope, begunAt time.Time) {
	p := j.Prepared
	if p.Tool().SideEffects == registry.SideEffectsWrites {
		return e.once(ctx, j, session, caps)
	}
	return e.try(ctx, p, session, caps)
}

// try runs a call, in text mode a second time where that may help and cannot hurt. What
// may have changed something is not run again: the first run may still be at it.
func (e *Executor) try(ctx context.Context, p *registry.Prepared, session registry.Session, caps []any) (env registry.Envelope, begunAt time.Time) {
	if ctx.Err() == nil { // else it does not begin
		begunAt = time.Now()
	}
	env = p.Run(ctx, session, caps...)
	if p.Mode() != registry.ModeText || env.OK || !p.Tool().Idempotent ||
		env.Error.Type != registry.ErrorTransient || !env.Error.Retryable || env.Error.PartialSideEffects {
		return env, begunAt
	}
	select {
	case <-time.After(e.opts.RetryAfter):
	case <-ctx.Done():
		return env, begunAt
	}
	e.opts.Logger.Info("tool call repeated", "tool", p.Tool().ToolID, "session_id", session.ID, "error_type", string(env.Error.Type))
	first := env.Meta.DurationMS
	env = p.Run(ctx, session, caps...)
	env.Meta.DurationMS += first
	return env, begunAt
}
