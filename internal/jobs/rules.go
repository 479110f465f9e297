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
	// MaxAttempts is the number of times a job is tried.
	MaxAttempts = 3
	// againAfter is the delay before retrying a retryable failure, multiplied by the attempt number.
	againAfter = 15 * time.Second
)

func due(j store.Job, now time.Time) bool { return !j.State.Over() && !now.Before(j.Next) }

// take returns a job for a node that holds its lease and starts its next attempt. A job found running belonged to a
// process that died; after MaxAttempts of those the job has failed.
func take(j store.Job, node string, now time.Time) store.Job {
	if j.Attempt >= MaxAttempts {
		failed := registry.NewError(registry.ErrorPermanent, prompts.JobInterrupted(j.Tool, j.Attempt))
		failed.PartialSideEffects = true
		env := registry.Envelope{Error: failed, Meta: registry.Meta{Tool: j.Tool, ResponseSchemaVersion: registry.ResponseSchemaVersion}}
		return over(j, env, now)
	}
	j.State, j.Node, j.StartedAt, j.Next, j.Progress = store.JobRunning, node, now.UTC(), time.Time{}, nil
	j.Attempt++
	return j
}

func settle(j store.Job, env registry.Envelope, now time.Time) store.Job {
	if !env.OK && env.Error.Retryable && j.Attempt < MaxAttempts {
		j.State, j.Node, j.Progress = store.JobWaiting, "", nil
		j.Next = now.UTC().Add(time.Duration(j.Attempt) * againAfter)
		return j
	}
	return over(j, env, now)
}

// giveBack returns a job whose process is shutting down. The interrupted attempt doesn't count.
func giveBack(j store.Job) store.Job {
	j.State, j.Node, j.Progress = store.JobWaiting, "", nil
	j.Attempt--
	return j
}

func over(j store.Job, env registry.Envelope, now time.Time) store.Job {
	j.State = store.JobFailed
	if env.OK {
		j.State = store.JobDone
	}
	j.Node, j.EndedAt, j.Result, j.Payload = "", now.UTC(), env.Encode(), nil
	return j
}

func cancel(j store.Job, now time.Time) (is store.Job, ok bool) {
	if j.State.Over() {
		return j, false
	}
	j.State, j.Node, j.EndedAt, j.Payload = store.JobCancelled, "", now.UTC(), nil
	return j, true
}

// reported marks a job's end as reported to its conversation; ok is false if no report is due.
func reported(j store.Job, now time.Time) (is store.Job, ok bool) {
	if !j.Owed() {
		return j, false
	}
	j.ToldAt = now.UTC()
	return j, true
}

func run(j store.Job) registry.JobRun {
	return registry.JobRun{
		ID: j.ID, Tool: j.Tool, Attempt: j.Attempt, Payload: j.Payload, Key: j.Key,
		Session: registry.Session{
			ID: j.Session, UserID: j.User, ConversationID: j.Conversation, Agent: j.Agent, Vouched: j.Vouched, Scopes: j.Scopes,
			Mode: spec.Mode(j.Mode), Turn: j.Turn, Call: j.Call, Now: j.StartedAt,
		},
	}
}

// keyOf returns a new job's unique idempotency key: short, in plain ASCII.
func keyOf(j store.Job) string {
	sum := sha256.Sum256([]byte(j.ID + "\x00" + j.Action))
	return "vg-" + hex.EncodeToString(sum[:16])
}

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
