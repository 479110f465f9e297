package execute

import (
	"context"
	"time"

	"voicegw/protocol"

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// wasApproved reports whether a person has approved the call, so that it runs even after the conversation's end.
func wasApproved(r calls.Run) bool { return r.Reference != "" }

// mustFinish reports whether a call continues after its client has left, because the client may send it again.
func mustFinish(r calls.Run) bool {
	return r.Message != "" && r.Prepared.Tool().SideEffects == spec.SideEffectsWrites
}

// Run starts a call and reports calls.Finished.
func (c *Runner) Run(r calls.Run) {
	tool := r.Prepared.Tool()
	ctx, cancel := context.WithCancelCause(protocol.WithTraceParent(c.e.ctx(), c.c.Trace))
	c.mu.Lock()
	if c.cancels == nil {
		c.cancels = make(map[string]*running)
	}
	c.cancels[r.Call] = &running{cancel: cancel, cancellable: tool.Cancellable && !wasApproved(r) && !mustFinish(r)}
	c.mu.Unlock()
	c.begin(tool.ToolID, func() {
		if !wasApproved(r) && c.isOver() {
			cancel(errOver) // the call must not begin
		}
		env, begunAt := c.e.run(ctx, r, c.session(r.Turn, r.Call), c.c, outermost(r, c.asks, &c.wg))
		c.mu.Lock()
		delete(c.cancels, r.Call)
		c.mu.Unlock()
		cancel(nil)
		c.c.Report(calls.Finished{Call: r.Call, Envelope: env, BegunAt: begunAt})
	})
}

func (c *Conversation) owned() bool { return c.Owned == nil || c.Owned() }

// checkpoint stores that a call has begun. Cancelling the call does not interrupt it.
func (c *Conversation) checkpoint(ctx context.Context) error {
	if c.Checkpoint == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return c.Checkpoint(ctx)
}

func (c *Runner) session(turn int, call string) registry.Session {
	s := c.now()
	s.Turn, s.Call, s.Now = turn, call, time.Now().UTC()
	if c.c.Describe != nil {
		c.c.Describe(&s)
	}
	return s
}

// run runs a call and returns its answer and the start of its handler. A writing call is first reserved in the ledger.
// Ownership is checked last because the process may have been suspended.
func (e *Executor) run(ctx context.Context, j calls.Run, session registry.Session, c *Conversation,
	at *callPath) (env registry.Envelope, begunAt time.Time) {
	p := j.Prepared
	if j.Repeats != nil {
		return e.repeated(ctx, *j.Repeats), time.Time{}
	}
	b, caps, end := newMessenger(j, session, c)
	defer end()
	with := &callEnv{e: e, path: at, run: j, session: session, c: c, messenger: b, caps: caps}
	if p.Tool().SideEffects != spec.SideEffectsWrites {
		env, begunAt = e.try(ctx, p, session, with)
		return e.begunJob(ctx, env, actionKey(j, session), j, session, c), begunAt
	}
	if e.opts.Ledger == nil {
		return p.Refuse(registry.NewError(registry.ErrorPermanent, prompts.NoLedger)), time.Time{}
	}
	if err := context.Cause(ctx); err != nil {
		return e.try(ctx, p, session, with) // returns the answer for a call that has not begun
	}
	if !c.owned() {
		return e.notOwned(j, session), time.Time{}
	}
	name := actionKey(j, session)
	entry, fresh, err := e.reserve(ctx, store.Reservation{
		Key: name, Tool: p.Tool().ToolID, Session: session.ID, Call: j.Call, Turn: j.Turn,
		Lease: time.Duration(p.Tool().TimeoutMS)*time.Millisecond + leaseMargin,
	})
	switch {
	case err != nil:
		return e.unrecorded(j, session, "ledger", err), time.Time{}
	case !fresh:
		return e.found(ctx, entry, j), time.Time{}
	}
	if err := c.checkpoint(ctx); err != nil {
		env = e.unrecorded(j, session, "checkpoint", err)
		e.record(entry, env, j, session)
		return env, time.Time{}
	}
	if !c.owned() {
		env = e.notOwned(j, session)
		e.record(entry, env, j, session)
		return env, time.Time{}
	}
	p.SetIdempotencyKey(handlerKey(name))
	env, begunAt = e.try(ctx, p, session, with)
	with.markWrites(&env)
	env = e.begunJob(ctx, env, name, j, session, c)
	e.record(entry, env, j, session)
	return env, begunAt
}

// try runs a call that is available and within its rate limit, which counts only calls that begin. In text mode, a call
// without side effects is retried once after a transient error.
func (e *Executor) try(ctx context.Context, p *registry.Prepared, session registry.Session,
	with *callEnv) (env registry.Envelope, begunAt time.Time) {
	if env := e.unavailable(p, session); env != nil {
		return *env, time.Time{}
	}
	if limit := p.Tool().RateLimit; limit != nil {
		key := rateKeyOf(p.Tool(), session)
		at, wait := e.rates.Begin(key, limit.Calls, limit.Within())
		if wait > 0 {
			return e.rateLimited(p, session, *limit, wait), time.Time{}
		}
		defer func() {
			if env.Unbegun {
				e.rates.Undo(key, at)
			}
		}()
	}
	if ctx.Err() == nil { // otherwise it does not begin
		begunAt = time.Now()
	}
	// Nested calls end with the run, even if its handler continues.
	once := func() registry.Envelope {
		tools, parts := &toolbox{callEnv: with}, &stream{b: with.messenger}
		defer tools.end()
		defer parts.end()
		return p.Run(ctx, session, append([]any{tools, parts}, with.caps...)...)
	}
	env = once()
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
	env = once()
	env.Meta.DurationMS += first
	env.Unbegun = env.Unbegun && unbegun
	return env, begunAt
}
