package execute

import (
	"context"
	"time"

	"voicegw/internal/traceparent"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// wasApproved reports whether a person has approved the call: such a call runs even if the
// conversation is over by now.
func wasApproved(r calls.Run) bool { return r.Reference != "" }

// mustFinish reports whether a call, once begun, goes on even if its client has left: the ledger
// recognises the call when the client sends the message again.
func mustFinish(r calls.Run) bool {
	return r.Message != "" && r.Prepared.Tool().SideEffects == spec.SideEffectsWrites
}

// Run starts a call. The result is reported as calls.Finished.
func (c *Runner) Run(r calls.Run) {
	tool := r.Prepared.Tool()
	ctx, cancel := context.WithCancelCause(traceparent.With(c.e.ctx(), c.c.Trace))
	c.mu.Lock()
	if c.cancels == nil {
		c.cancels = make(map[string]*running)
	}
	c.cancels[r.Call] = &running{cancel: cancel, cancellable: tool.Cancellable && !wasApproved(r) && !mustFinish(r)}
	c.mu.Unlock()
	c.begin(tool.ToolID, func() {
		if !wasApproved(r) && c.isOver() {
			cancel(errOver) // the conversation is over: the call must not begin
		}
		env, begunAt := c.e.run(ctx, r, c.session(r.Turn, r.Call), c.c, outermost(r, c.asks, &c.wg))
		c.mu.Lock()
		delete(c.cancels, r.Call)
		c.mu.Unlock()
		cancel(nil)
		c.c.Report(calls.Finished{Call: r.Call, Envelope: env, BegunAt: begunAt})
	})
}

// sure reports whether the conversation is still this process's.
func (c *Conversation) sure() bool { return c.Sure == nil || c.Sure() }

// remember makes durable that a call has begun; cancelling the call does not interrupt that.
func (c *Conversation) remember(ctx context.Context) error {
	if c.Remember == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return c.Remember(ctx)
}

// session describes the conversation to a call of that turn, now.
func (c *Runner) session(turn int, call string) registry.Session {
	s := c.now()
	s.Turn, s.Call, s.Now = turn, call, time.Now().UTC()
	if c.c.Describe != nil {
		c.c.Describe(&s)
	}
	return s
}

// try runs a call and, in text mode, repeats it once if that may help and can do no harm. A call
// that may have changed something is not repeated: the first run may still be in progress.
func (e *Executor) try(ctx context.Context, p *registry.Prepared, session registry.Session, with *company) (env registry.Envelope, begunAt time.Time) {
	if ctx.Err() == nil { // otherwise the call does not begin
		begunAt = time.Now()
	}
	env = with.attempt(ctx, p, session)
	if p.Mode() != spec.ModeText || env.OK || !p.Tool().Idempotent ||
		env.Error.Type != registry.ErrorTransient || !env.Error.Retryable || env.Error.PartialSideEffects {
		return env, begunAt
	}
	select {
	case <-time.After(e.opts.RetryAfter):
	case <-ctx.Done():
		return env, begunAt
	}
	e.opts.Logger.Info("tool call repeated", "tool", p.Tool().ToolID, "session_id", session.ID, "error_type", string(env.Error.Type))
	first, unbegun := env.Meta.DurationMS, env.Unbegun
	env = with.attempt(ctx, p, session)
	env.Meta.DurationMS += first
	env.Unbegun = env.Unbegun && unbegun
	return env, begunAt
}
