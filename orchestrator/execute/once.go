package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/prompts/toolerror"
	"voicegw/registry"
	"voicegw/store"
)

// recordTime bounds each entry in the ledger. Nothing else ends it: one that is cut off
// half way may stand although nothing was done.
const recordTime = 5 * time.Second

// leaseMargin is how much longer than its tool's time a reservation counts as being
// worked on.
const leaseMargin = 5 * time.Second

// deed is the name under which a call is entered in the ledger: the tool's business key
// for this user, else the call of a message that may be sent again, else the call itself in
// this session.
func deed(j calls.Run, session registry.Session) string {
	parts := []string{"call", session.ID, j.Keys.Idempotency}
	if j.Message != "" {
		parts = []string{"message", j.Message}
	}
	if j.Keys.Business != "" {
		parts = []string{"deed", session.UserID, j.Prepared.Tool().ToolID, j.Keys.Business}
	}
	name, _ := json.Marshal(parts) // strings alone: it cannot fail
	return string(name)
}

// handlerKey is what the handler sees of a deed's name, to hand on to the system that it
// writes to: short, of plain characters, the same for the same deed and no other.
func handlerKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "vg-" + hex.EncodeToString(sum[:16])
}

// run runs a call, and returns when its handler began. A call that writes is entered in the
// ledger first, and does not run if it was done before, or may have been.
func (e *Executor) run(ctx context.Context, j calls.Run, session registry.Session, caps []any) (env registry.Envelope, begunAt time.Time) {
	p := j.Prepared
	if p.Tool().SideEffects != registry.SideEffectsWrites {
		return e.try(ctx, p, session, caps)
	}
	if e.opts.Ledger == nil {
		return p.Refuse(registry.NewError(registry.ErrorPermanent, toolerror.NoLedger())), time.Time{}
	}
	if err := context.Cause(ctx); err != nil {
		return e.try(ctx, p, session, caps) // which says that it has not begun
	}
	name := deed(j, session)
	entry, fresh, err := e.reserve(ctx, store.Reservation{
		Key: name, Tool: p.Tool().ToolID, Session: session.ID, Call: j.Call, Turn: j.Turn,
		Lease: time.Duration(p.Tool().TimeoutMS)*time.Millisecond + leaseMargin,
	})
	switch {
	case err != nil:
		e.opts.Logger.Error("a side effect could not be entered in the ledger and was not begun", "tool", p.Tool().ToolID, "session_id", session.ID, "call_id", j.Call, "error", err)
		return p.Refuse(registry.NewError(registry.ErrorTransient, toolerror.NotRecorded())), time.Time{}
	case !fresh:
		return e.found(entry, j), time.Time{}
	}
	p.SetIdempotencyKey(handlerKey(name))
	env, begunAt = e.try(ctx, p, session, caps)
	e.record(entry, env, j, session)
	return env, begunAt
}

// reserve makes an entry, or finds it. That the call is stopped meanwhile does not end it.
func (e *Executor) reserve(ctx context.Context, r store.Reservation) (store.Entry, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return e.opts.Ledger.Reserve(ctx, r)
}

// found answers a call whose deed stands in the ledger already.
func (e *Executor) found(entry store.Entry, j calls.Run) registry.Envelope {
	p := j.Prepared
	if entry.State == store.Done {
		var env registry.Envelope
		err := json.Unmarshal(entry.Envelope, &env)
		if err == nil {
			env.Meta.CacheHit, env.Meta.OriginalTurn = true, max(entry.Turn, 1)
			return env
		}
		e.opts.Logger.Error("an answer in the ledger cannot be read", "tool", p.Tool().ToolID, "call_id", j.Call, "error", err)
	}
	words, running := toolerror.OutcomeUnknown(), time.Now().Before(entry.LeaseUntil)
	if running {
		words = toolerror.MayStillRun()
	}
	told := registry.NewError(registry.ErrorConflict, words)
	told.PartialSideEffects, told.Retryable = true, running
	e.opts.Logger.Warn("a side effect was begun before and not finished; it is not run again", "tool", p.Tool().ToolID, "session_id", entry.Session, "call_id", entry.Call, "begun_at", entry.At)
	return p.Refuse(told)
}

// record enters what came of a deed: done with its answer, or not done at all. What may
// have been done in part stays open, so that it is never begun again by itself, unless the
// handler finds out by itself what came of it.
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
		e.opts.Logger.Error("the ledger could not be told what came of a side effect; another call will be told that it may have been done",
			"tool", j.Prepared.Tool().ToolID, "session_id", session.ID, "call_id", j.Call, "ok", env.OK, "error", err)
	}
}
