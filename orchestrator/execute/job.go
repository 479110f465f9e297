package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"voicegw/orchestrator/calls"
	"voicegw/prompts/toolerror"
	"voicegw/registry"
	"voicegw/store"
)

// Jobs does the long work that calls begin; *jobs.Runner implements it.
type Jobs interface {
	// Start begins a job, and returns its id; that of the same deed if it is under way, or, unless anew, if
	// it is over. The error wraps store.ErrFull if as many are under way as may be.
	Start(ctx context.Context, j store.Job, atOnce int, anew bool) (id string, err error)
}

// jobAnswer is what a call that has begun a job is answered with.
type jobAnswer struct {
	Job     string `json:"job"`
	State   string `json:"state"`
	Message string `json:"message"`
}

// begunJob begins the long work that a call has asked for, and makes the answer to the call of it. deed is
// the name of the call in the ledger.
func (e *Executor) begunJob(ctx context.Context, env registry.Envelope, deed string, r calls.Run, session registry.Session, c *Conversation) registry.Envelope {
	if !env.OK || env.Job == nil {
		return env
	}
	tool := r.Prepared.Tool()
	job := env.Job
	env.Job = nil
	if e.opts.Jobs == nil || c.Unkept {
		env.Fail(registry.NewError(registry.ErrorPermanent, toolerror.NoJobs(tool.Job.Name)))
		return env
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	id, err := e.opts.Jobs.Start(ctx, store.Job{
		Deed: deed, Tool: tool.ToolID, Name: tool.Job.Name, User: session.UserID, Vouched: session.Vouched, Scopes: session.Scopes,
		Conversation: cmp.Or(session.ConversationID, session.ID), Session: session.ID, Agent: session.Agent, Mode: string(r.Prepared.Mode()),
		Turn: session.Turn, Call: r.Call, Payload: job.Payload,
	}, tool.Job.AtOnce, r.Keys.Business != "")
	switch {
	case err == nil:
		env.Data, _ = json.Marshal(jobAnswer{Job: id, State: "started", Message: job.Told}) // texts alone: it cannot fail
	case errors.Is(err, store.ErrFull):
		env.Fail(registry.NewError(registry.ErrorRateLimit, toolerror.TooManyJobs(tool.Job.Name)))
	default:
		e.opts.Logger.Error("a job could not be begun", "tool", tool.ToolID, "session_id", session.ID, "call_id", r.Call, "error", err)
		why := registry.NewError(registry.ErrorTransient, toolerror.NotRecorded())
		why.PartialSideEffects = errors.Is(err, store.ErrUnavailable) // it may have been written all the same
		env.Fail(why)
	}
	return env
}
