package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/store"
)

// Jobs runs the long work of calls; *jobs.Runner implements it.
type Jobs interface {
	// Start begins a job; fresh is then true. It returns the existing job of the same action if that is under way or,
	// unless anew, over. The error wraps store.ErrFull if the user has too many jobs.
	Start(ctx context.Context, j store.Job, atOnce int, anew bool) (is store.Job, fresh bool, err error)
	// Room returns an error that wraps store.ErrFull if Start would refuse a new job for that user, tool and action.
	Room(user, tool, action string, atOnce int) error
	// Job returns a job with its result. The error is store.ErrUnknown or wraps store.ErrUnavailable.
	Job(ctx context.Context, id string) (store.Job, error)
}

type jobAnswer struct {
	Job      string             `json:"job"`
	State    string             `json:"state"`
	Progress *store.JobProgress `json:"progress,omitempty"` // the job's last report; absent without one
	Message  string             `json:"message"`
}

// reportable reports whether the conversation can learn of the end of a job: it is stored, or its session runs here.
func (c *Conversation) reportable(session registry.Session) bool {
	return !c.Ephemeral && (session.ConversationID != "" || c.over == nil || !c.over())
}

// noRoom returns why a call cannot begin a job now; nil if it can, or if its tool has no jobs.
func (e *Executor) noRoom(p *registry.Prepared, session registry.Session, c *Conversation, action string) *registry.Error {
	tool := p.Tool()
	switch {
	case tool.Job == nil:
		return nil
	case e.opts.Jobs == nil || !c.reportable(session):
		return registry.NewError(registry.ErrorPermanent, prompts.NoJobs(tool.Job.Name))
	case errors.Is(e.opts.Jobs.Room(session.UserID, tool.ToolID, action, tool.Job.AtOnce), store.ErrFull):
		return registry.NewError(registry.ErrorRateLimit, prompts.TooManyJobs(tool.Job.Name))
	}
	return nil
}

// begunJob starts the job that a call's result asks for. action is the call's key in the ledger.
func (e *Executor) begunJob(ctx context.Context, env registry.Envelope, action string, r calls.Run, session registry.Session,
	c *Conversation) registry.Envelope {
	if !env.OK || env.Job == nil {
		return env
	}
	tool := r.Prepared.Tool()
	job := env.Job
	env.Job = nil
	if why := e.noRoom(r.Prepared, session, c, action); why != nil {
		env.Fail(why)
		return env
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	is, fresh, err := e.opts.Jobs.Start(ctx, store.Job{
		Action: action, Tool: tool.ToolID, Name: tool.Job.Name, User: session.UserID, Vouched: session.Vouched, Scopes: session.Scopes,
		Conversation: cmp.Or(session.ConversationID, session.ID), Session: session.ID, Agent: session.Agent,
		Mode: string(r.Prepared.Mode()),
		Turn: session.Turn, Call: r.Call, Payload: job.Payload,
	}, tool.Job.AtOnce, r.Keys.Business != "")
	switch {
	case err == nil && fresh:
		env.Meta.Job = is.ID
		env.Data, _ = json.Marshal(jobAnswer{Job: is.ID, State: "started", Message: job.Told}) // only strings: it cannot fail
	case err == nil:
		env.Meta.Job = is.ID
		return jobNow(calls.Again(env, is.Turn), is)
	case errors.Is(err, store.ErrFull):
		env.Fail(registry.NewError(registry.ErrorRateLimit, prompts.TooManyJobs(tool.Job.Name)))
	default:
		e.opts.Logger.Error("job not started", "tool", tool.ToolID, "session_id", session.ID, "call_id", r.Call, "error", err)
		why := registry.NewError(registry.ErrorTransient, prompts.NotRecorded)
		why.PartialSideEffects = errors.Is(err, store.ErrUnavailable) // it may have been written
		env.Fail(why)
	}
	return env
}

func (e *Executor) repeated(ctx context.Context, stored registry.Envelope) registry.Envelope {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	j, err := store.Job{ID: stored.Meta.Job}, error(store.ErrUnknown)
	if e.opts.Jobs != nil {
		j, err = e.opts.Jobs.Job(ctx, stored.Meta.Job)
	}
	switch {
	case err == nil:
		return jobNow(stored, j)
	case errors.Is(err, store.ErrUnknown): // the store has dropped the old job
		stored.Data, _ = json.Marshal(jobAnswer{Job: stored.Meta.Job, State: "ended", Message: prompts.JobForgotten})
	default:
		e.opts.Logger.Warn("job not read", "tool", stored.Meta.Tool, "job", stored.Meta.Job, "error", err)
		stored.Fail(registry.NewError(registry.ErrorTransient, prompts.JobUnread))
	}
	return stored
}

func jobNow(env registry.Envelope, j store.Job) registry.Envelope {
	answer := jobAnswer{Job: j.ID, State: string(j.State), Progress: j.Progress, Message: prompts.JobUnderWay}
	switch j.State {
	case store.JobDone, store.JobFailed:
		var result registry.Envelope
		if err := json.Unmarshal(j.Result, &result); err == nil && (result.OK || result.Error != nil) {
			result.Meta = env.Meta
			return result
		}
		answer.Message = prompts.JobForgotten
	case store.JobCancelled:
		answer.Message = prompts.JobCancelled
	case store.JobWaiting, store.JobRunning:
	}
	env.Data, _ = json.Marshal(answer) // strings, a time and a finite number: it cannot fail
	return env
}
