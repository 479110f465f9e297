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
	// Approved says that a person has approved it: it runs although the conversation may
	// be over by now.
	Approved bool
}

// Run lets a call run, at most four of a conversation at a time. Finished is told.
func (c *Calls) Run(j Job) {
	ctx, cancel := context.WithCancelCause(c.e.ctx())
	c.mu.Lock()
	c.cancels[j.Call] = &running{cancel: cancel, cancellable: j.Prepared.Tool().Cancellable && !j.Approved}
	c.mu.Unlock()
	c.begin(func() {
		defer func() {
			c.mu.Lock()
			delete(c.cancels, j.Call)
			c.mu.Unlock()
			cancel(nil)
		}()
		c.c.Finished(j.Call, c.inTurn(ctx, j, cancel))
	})
}

// inTurn waits for a place and runs the call.
func (c *Calls) inTurn(ctx context.Context, j Job, cancel context.CancelCauseFunc) registry.Envelope {
	over := c.over().Done()
	if j.Approved {
		over = nil
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
	case <-over:
		cancel(errOver)
	}
	session := c.c.Session
	session.Turn, session.Now = j.Turn, time.Now().UTC()
	return c.e.run(ctx, j, session, c.c.Capabilities)
}

// run executes a call whose turn has come. One that writes is entered in the ledger
// first, and is not run where it stands there already.
func (e *Executor) run(ctx context.Context, j Job, session registry.Session, caps []any) registry.Envelope {
	p := j.Prepared
	if p.Tool().SideEffects == registry.SideEffectsWrites {
		return e.once(ctx, j, session, caps)
	}
	return e.try(ctx, p, session, caps)
}

// try runs a call, in text mode a second time where that may help and cannot hurt.
func (e *Executor) try(ctx context.Context, p *registry.Prepared, session registry.Session, caps []any) registry.Envelope {
	env := p.Run(ctx, session, caps...)
	if p.Mode() != registry.ModeText || env.OK || env.Error.Type != registry.ErrorTransient || !env.Error.Retryable || !p.Tool().Idempotent {
		return env
	}
	select {
	case <-time.After(e.opts.RetryAfter):
	case <-ctx.Done():
		return env
	}
	e.opts.Logger.Info("tool call repeated", "tool", p.Tool().ToolID, "session_id", session.ID, "error_type", string(env.Error.Type))
	first := env.Meta.DurationMS
	env = p.Run(ctx, session, caps...)
	env.Meta.DurationMS += first
	return env
}
