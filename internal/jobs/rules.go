package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

const (
	// MaxAttempts is how often the work of a job is begun.
	MaxAttempts = 3
	// againAfter is how long after a failure that may be repeated the next attempt begins, times the number
	// of attempts.
	againAfter = 15 * time.Second
)

// due reports whether an attempt at a job may begin.
func due(j store.Job, now time.Time) bool { return !j.State.Over() && !now.Before(j.Next) }

// take returns a job whose next attempt begins at a node that has its lease. A job that is found running was
// left by a process that has died. If that has happened as often as it may, the job has failed.
func take(j store.Job, node string, now time.Time) store.Job {
	if j.Attempt >= MaxAttempts {
		told := registry.NewError(registry.ErrorPermanent, prompts.JobInterrupted(j.Tool, j.Attempt))
		told.PartialSideEffects = true
		env := registry.Envelope{Error: told, Meta: registry.Meta{Tool: j.Tool, ResponseSchemaVersion: registry.ResponseSchemaVersion}}
		return over(j, env, now)
	}
	j.State, j.Node, j.StartedAt, j.Next, j.Progress = store.JobRunning, node, now.UTC(), time.Time{}, nil
	j.Attempt++
	return j
}

// settle returns a job after an attempt that ended with an envelope.
func settle(j store.Job, env registry.Envelope, now time.Time) store.Job {
	if !env.OK && env.Error.Retryable && j.Attempt < MaxAttempts {
		j.State, j.Node, j.Progress = store.JobWaiting, "", nil
		j.Next = now.UTC().Add(time.Duration(j.Attempt) * againAfter)
		return j
	}
	return over(j, env, now)
}

// giveBack returns a job whose attempt was stopped because its process ends: another attempt takes its place.
func giveBack(j store.Job) store.Job {
	j.State, j.Node, j.Progress = store.JobWaiting, "", nil
	j.Attempt--
	return j
}

// over returns a job that has ended.
func over(j store.Job, env registry.Envelope, now time.Time) store.Job {
	j.State = store.JobFailed
	if env.OK {
		j.State = store.JobDone
	}
	j.Node, j.EndedAt, j.Result, j.Payload = "", now.UTC(), env.Encode(), nil
	return j
}

// cancel returns a job that somebody has cancelled; ok is false if it is over already.
func cancel(j store.Job, now time.Time) (is store.Job, ok bool) {
	if j.State.Over() {
		return j, false
	}
	j.State, j.Node, j.EndedAt, j.Payload = store.JobCancelled, "", now.UTC(), nil
	return j, true
}

// told returns a job whose conversation was told of its end; ok is false if it was before, or is not to be.
func told(j store.Job, now time.Time) (is store.Job, ok bool) {
	if !j.Owed() {
		return j, false
	}
	j.ToldAt = now.UTC()
	return j, true
}

// run returns what the registry needs for the attempt that runs.
func run(j store.Job) registry.JobRun {
	return registry.JobRun{
		ID: j.ID, Tool: j.Tool, Attempt: j.Attempt, Payload: j.Payload, Key: j.Key,
		Session: registry.Session{
			ID: j.Session, UserID: j.User, ConversationID: j.Conversation, Agent: j.Agent, Vouched: j.Vouched, Scopes: j.Scopes,
			Mode: spec.Mode(j.Mode), Turn: j.Turn, Call: j.Call, Now: j.StartedAt,
		},
	}
}

// keyOf returns the idempotency key of a new job: short, of plain characters, and no other job's.
func keyOf(j store.Job) string {
	sum := sha256.Sum256([]byte(j.ID + "\x00" + j.Deed))
	return "vg-" + hex.EncodeToString(sum[:16])
}

// failure returns the type of the error with which a job ended; empty if it did not fail.
func failure(j store.Job) registry.ErrorType {
	var env struct {
		Error *struct {
			Type registry.ErrorType `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(j.Result, &env) != nil || env.Error == nil {
		return ""
	}
	return env.Error.Type
}
