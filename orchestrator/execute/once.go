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
	"voicegw/registry"
	"voicegw/store"
)

// recordTime bounds each operation on the ledger. Nothing else interrupts one: an interrupted
// reservation might remain although nothing was done.
const recordTime = 5 * time.Second

// leaseMargin is how much longer than the tool's timeout a reservation counts as in progress.
const leaseMargin = 5 * time.Second

// deed returns the ledger's key for a call: made from the tool's business key for this user, or
// else from the call of a message that may be sent again, or else from the call itself in this
// session.
func deed(j calls.Run, session registry.Session) string {
	parts := []string{"call", session.ID, j.Keys.Idempotency}
	if j.Message != "" {
		parts = []string{"message", j.Message}
	}
	if j.Keys.Business != "" {
		parts = []string{"deed", session.UserID, j.Prepared.Tool().ToolID, j.Keys.Business}
	}
	name, _ := json.Marshal(parts) // only strings: it cannot fail
	return string(name)
}

// handlerKey returns the key that the handler passes on to the system it writes to: short, of
// plain characters, and unique to the deed.
func handlerKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "vg-" + hex.EncodeToString(sum[:16])
}

// unrecorded refuses a call that nobody would know of later.
func (e *Executor) unrecorded(j calls.Run, session registry.Session, where string, err error) registry.Envelope {
	tool := j.Prepared.Tool().ToolID
	e.opts.Logger.Error("a side effect could not be entered in the "+where+" and was not begun", "tool", tool, "session_id", session.ID, "call_id", j.Call, "error", err)
	return j.Prepared.Refuse(registry.NewError(registry.ErrorTransient, prompts.NotRecorded()))
}

// unsure refuses a call of a conversation that another process may have.
func (e *Executor) unsure(j calls.Run, session registry.Session) registry.Envelope {
	tool := j.Prepared.Tool().ToolID
	e.opts.Logger.Warn("another process may have the session: a side effect was not begun", "tool", tool, "session_id", session.ID, "call_id", j.Call)
	return j.Prepared.Refuse(registry.NewError(registry.ErrorTransient, prompts.NotRecorded()))
}

// reserve makes an entry or finds the existing one. Cancelling the call does not interrupt it.
func (e *Executor) reserve(ctx context.Context, r store.Reservation) (store.Entry, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return e.opts.Ledger.Reserve(ctx, r)
}

// found answers a call whose deed is already in the ledger.
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
		e.opts.Logger.Error("an answer in the ledger cannot be read", "tool", p.Tool().ToolID, "call_id", j.Call, "error", err)
	}
	words, running := prompts.OutcomeUnknown(), time.Now().Before(entry.LeaseUntil)
	if running {
		words = prompts.MayStillRun()
	}
	told := registry.NewError(registry.ErrorConflict, words)
	told.PartialSideEffects, told.Retryable = true, running
	e.opts.Logger.Warn("a side effect was begun before and not finished; it is not run again", "tool", p.Tool().ToolID, "session_id", entry.Session, "call_id", entry.Call, "begun_at", entry.At)
	return p.Refuse(told)
}

// record enters the outcome of a deed: done, with its answer, or not done at all. A deed that
// may have been done in part stays pending, so that it is never repeated automatically, unless
// its handler can find out what happened.
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
