package execute

import (
	"context"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
)

// wasApproved says that a person has approved the call: it runs although the conversation may
// be over by now.
func wasApproved(r calls.Run) bool { return r.Reference != "" }

// mustFinish says that a call goes on once it has begun, also for a client that has left: it
// is known by name when the message comes again.
func mustFinish(r calls.Run) bool {
	return r.Message != "" && r.Prepared.Tool().SideEffects == registry.SideEffectsWrites
}

// Run lets a call run. What came of it is reported as calls.Finished.
func (c *Calls) Run(r calls.Run) {
	tool := r.Prepared.Tool()
	ctx, cancel := context.WithCancelCause(c.e.ctx())
	c.mu.Lock()
	c.cancels[r.Call] = &running{cancel: cancel, cancellable: tool.Cancellable && !wasApproved(r) && !mustFinish(r)}
	c.mu.Unlock()
	c.begin(tool.ToolID, func() {
		if !wasApproved(r) && c.over().Err() != nil {
			cancel(errOver) // what has not begun does not begin
		}
		env, begunAt := c.e.run(ctx, r, c.session(r.Turn), c.c.Capabilities)
		c.mu.Lock()
		delete(c.cancels, r.Call)
		c.mu.Unlock()
		cancel(nil)
		c.c.Report(calls.Finished{Call: r.Call, Envelope: env, BegunAt: begunAt})
	})
}

// session is the conversation, as a call of a turn sees it now.
func (c *Calls) session(turn int) registry.Session {
	s := c.c.Session
	s.Turn, s.Now = turn, time.Now().UTC()
	return s
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
