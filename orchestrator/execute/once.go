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
