package execute

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/protocol"
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
	b := &messenger{run: j, session: session, c: c, begun: time.Now()}
	defer b.end()
	with := &callEnv{e: e, path: at, run: j, session: session, c: c, messenger: b}
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
	if at.wrote.Load() && !env.OK {
		env.Error.PartialSideEffects = true
	}
	env = e.begunJob(ctx, env, name, j, session, c)
	e.record(entry, env, j, session)
	return env, begunAt
}

// retryAfter is the pause before the retry of a call.
const retryAfter = 250 * time.Millisecond

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
		return p.Run(ctx, session, append([]any{tools, parts, with.messenger}, with.c.Capabilities...)...)
	}
	env = once()
	if p.Mode() != spec.ModeText || env.OK || !p.Tool().Idempotent ||
		env.Error.Type != registry.ErrorTransient || !env.Error.Retryable || env.Error.PartialSideEffects {
		return env, begunAt
	}
	select {
	case <-time.After(retryAfter):
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

type rateKey struct{ user, tool string }

func rateKeyOf(t *registry.Tool, s registry.Session) rateKey {
	return rateKey{user: cmp.Or(s.UserID, s.ID), tool: t.ToolID}
}

// tooOften returns the answer to a call beyond its tool's rate limit; nil within it. It counts nothing.
func (e *Executor) tooOften(p *registry.Prepared, s registry.Session) *registry.Envelope {
	limit := p.Tool().RateLimit
	if limit == nil {
		return nil
	}
	wait := e.rates.Wait(rateKeyOf(p.Tool(), s), limit.Calls, limit.Within())
	if wait <= 0 {
		return nil
	}
	env := e.rateLimited(p, s, *limit, wait)
	return &env
}

// refused returns the answer to a call that could not run even with an approval; nil if it could. It counts nothing.
func (e *Executor) refused(j calls.Run, s registry.Session, c *Conversation) *registry.Envelope {
	p := j.Prepared
	if env := e.unavailable(p, s); env != nil {
		return env
	}
	if env := e.tooOften(p, s); env != nil {
		return env
	}
	why := e.noRoom(p, s, c, actionKey(j, s))
	if p.Tool().SideEffects == spec.SideEffectsWrites && e.opts.Ledger == nil {
		why = registry.NewError(registry.ErrorPermanent, prompts.NoLedger)
	}
	if why == nil {
		return nil
	}
	env := p.Refuse(why)
	return &env
}

func (e *Executor) unavailable(p *registry.Prepared, s registry.Session) *registry.Envelope {
	env := p.Unavailable(s)
	if env != nil {
		e.opts.Logger.Info("tool not available", "tool", p.Tool().ToolID, "session_id", s.ID, "details", string(env.Error.Details))
	}
	return env
}

func (e *Executor) rateLimited(p *registry.Prepared, s registry.Session, limit spec.RateLimit, wait time.Duration) registry.Envelope {
	seconds := int64(math.Ceil(wait.Seconds()))
	told := registry.NewError(registry.ErrorRateLimit, prompts.CalledTooOften(p.Tool().ToolID, limit.Calls, limit.Window,
		time.Duration(seconds)*time.Second))
	told.Details, _ = json.Marshal(struct { // only numbers and strings: it cannot fail
		Calls       int    `json:"calls"`
		Window      string `json:"window"`
		RetryAfterS int64  `json:"retry_after_s"`
		RetryAt     string `json:"retry_at"`
	}{limit.Calls, limit.Window, seconds, time.Now().Add(wait).UTC().Add(time.Second - 1).Truncate(time.Second).Format(time.RFC3339)})
	e.opts.Logger.Info("tool call over its rate limit", "tool", p.Tool().ToolID, "session_id", s.ID, "retry_after_s", seconds)
	return p.Refuse(told)
}

// recordTime bounds each ledger operation. Nothing else interrupts one, or a reservation might remain for nothing.
const recordTime = 5 * time.Second

// leaseMargin is how much longer than the tool's timeout a reservation counts as in progress.
const leaseMargin = 5 * time.Second

// actionKey returns a call's key in the ledger: its business key for this user, its repeatable message, or itself.
func actionKey(j calls.Run, session registry.Session) string {
	parts := []string{"call", session.ID, j.Keys.Idempotency}
	if j.Message != "" {
		parts = []string{"message", j.Message}
	}
	if j.Keys.Business != "" {
		parts = []string{"deed", session.UserID, j.Prepared.Tool().ToolID, j.Keys.Business} // "deed" is part of stored keys
	}
	name, _ := json.Marshal(parts) // only strings: it cannot fail
	return string(name)
}

// handlerKey returns the key for the system that the handler writes to: short, plain, and unique to the action.
func handlerKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "vg-" + hex.EncodeToString(sum[:16])
}

func (e *Executor) unrecorded(j calls.Run, session registry.Session, where string, err error) registry.Envelope {
	tool := j.Prepared.Tool().ToolID
	e.opts.Logger.Error("side effect not started: "+where+" unavailable", "tool", tool, "session_id", session.ID,
		"call_id", j.Call, "error", err)
	return j.Prepared.Refuse(registry.NewError(registry.ErrorTransient, prompts.NotRecorded))
}

func (e *Executor) notOwned(j calls.Run, session registry.Session) registry.Envelope {
	tool := j.Prepared.Tool().ToolID
	e.opts.Logger.Warn("side effect not started: another process may own the session", "tool", tool,
		"session_id", session.ID, "call_id", j.Call)
	return j.Prepared.Refuse(registry.NewError(registry.ErrorTransient, prompts.NotRecorded))
}

// reserve makes an entry or finds the existing one. Cancelling the call does not interrupt it.
func (e *Executor) reserve(ctx context.Context, r store.Reservation) (store.Entry, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return e.opts.Ledger.Reserve(ctx, r)
}

func (e *Executor) found(ctx context.Context, entry store.Entry, j calls.Run) registry.Envelope {
	p := j.Prepared
	if entry.State == store.Done {
		var env registry.Envelope
		err := json.Unmarshal(entry.Envelope, &env)
		if err == nil {
			env.Meta.CacheHit, env.Meta.OriginalTurn = true, max(entry.Turn, 1)
			if env.Meta.Job != "" {
				return e.repeated(ctx, env)
			}
			return env
		}
		e.opts.Logger.Error("answer in the ledger is not readable", "tool", p.Tool().ToolID, "call_id", j.Call, "error", err)
	}
	words, running := prompts.OutcomeUnknown, time.Now().Before(entry.LeaseUntil)
	if running {
		words = prompts.MayStillRun
	}
	told := registry.NewError(registry.ErrorConflict, words)
	told.PartialSideEffects, told.Retryable = true, running
	e.opts.Logger.Warn("side effect started earlier and not finished; not running it again", "tool", p.Tool().ToolID,
		"session_id", entry.Session, "call_id", entry.Call, "begun_at", entry.At)
	return p.Refuse(told)
}

// record records the outcome of an action. One that may have been done in part stays pending and is never repeated,
// unless its handler can find out the outcome.
func (e *Executor) record(entry store.Entry, env registry.Envelope, j calls.Run, session registry.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), recordTime)
	defer cancel()
	var err error
	switch {
	case env.OK:
		err = e.opts.Ledger.Finish(ctx, entry, env.Encode())
		if errors.Is(err, store.ErrTooBig) {
			short := env
			short.Data = json.RawMessage(`{"note":"` + prompts.AnswerTooLong + `"}`)
			err = e.opts.Ledger.Finish(ctx, entry, short.Encode())
		}
	case !env.Error.PartialSideEffects, env.Error.Repeatable:
		err = e.opts.Ledger.Release(ctx, entry)
	}
	if err != nil {
		e.opts.Logger.Error("outcome of a side effect not recorded; repetitions will be refused as possibly done",
			"tool", j.Prepared.Tool().ToolID, "session_id", session.ID, "call_id", j.Call, "ok", env.OK, "error", err)
	}
}
