package gateway

import (
	"context"
	"errors"
	"net/http"

	"voicegw/internal/auth"
	"voicegw/protocol"
	"voicegw/store"
)

// Jobs manages background jobs; *jobs.Runner implements it. It must be safe for concurrent use.
type Jobs interface {
	List(user, conversation string) []store.Job
	// Job returns a job with its result. The error is store.ErrUnknown or wraps store.ErrUnavailable.
	Job(ctx context.Context, id string) (store.Job, error)
	// Cancel cancels a job; was is false if it was already over.
	Cancel(ctx context.Context, id, by string) (j store.Job, was bool, err error)
}

func jobLineOf(j store.Job) protocol.Job {
	l := protocol.Job{
		ID: j.ID, Tool: j.Tool, Name: j.Name, State: string(j.State), User: j.User, Conversation: j.Conversation, Session: j.Session,
		Agent: j.Agent, CallID: j.Call, Attempt: j.Attempt, Node: j.Node, CreatedAt: protocol.Time{Time: j.CreatedAt},
		StartedAt: protocol.Time{Time: j.StartedAt}, EndedAt: protocol.Time{Time: j.EndedAt},
		ToldAt: protocol.Time{Time: j.ToldAt}, Envelope: j.Result,
	}
	if p := j.Progress; p != nil {
		l.Progress = &protocol.JobReport{Text: p.Text, Fraction: p.Fraction, At: protocol.Time{Time: p.At}}
	}
	return l
}

// jobsOf returns the user whose jobs the caller may see, or "" for all with the scope all.
func jobsOf(r *http.Request, all auth.Scopes) (who string, no *problem) {
	p := auth.From(r.Context())
	if only := mine(r.Context()); !only.IsZero() {
		return only.String(), nil
	}
	if !p.May(all) {
		return "", refusal(http.StatusBadRequest, "no_user",
			"The credentials in Authorization belong to no user; to access all users' jobs they need the scope "+all.String()+".")
	}
	return "", nil
}

func (s operatorAPI) listJobs(w http.ResponseWriter, r *http.Request) *problem {
	only, no := jobsOf(r, auth.ScopeInspect)
	if no != nil {
		return no
	}
	q := r.URL.Query()
	who, wrong := listParameters(q, "conversation_id")
	if wrong != "" {
		return invalid(wrong)
	}
	if only != "" {
		who = only // overrides the parameter
	}
	lines := []protocol.Job{}
	for _, j := range s.opts.Jobs.List(who, q.Get("conversation_id")) {
		lines = append(lines, jobLineOf(j))
	}
	return answer(w, http.StatusOK, map[string]any{"jobs": lines})
}

// job returns the request's job. Another user's job is reported as unknown.
func (s operatorAPI) job(r *http.Request, all auth.Scopes) (store.Job, *problem) {
	only, no := jobsOf(r, all)
	if no != nil {
		return store.Job{}, no
	}
	id := r.PathValue("id")
	j, err := s.opts.Jobs.Job(r.Context(), id)
	switch {
	case errors.Is(err, store.ErrUnknown), err == nil && only != "" && j.User != only:
		return j, refusal(http.StatusNotFound, "unknown_job", "There is no job "+clip(id)+
			"; see GET /v1/jobs. Finished jobs are deleted an hour after the conversation gets their result, or after three days.")
	case err != nil:
		return j, s.storeFailed("reading a job failed", err)
	}
	return j, nil
}

func (s operatorAPI) showJob(w http.ResponseWriter, r *http.Request) *problem {
	j, no := s.job(r, auth.ScopeInspect)
	if no != nil {
		return no
	}
	return answer(w, http.StatusOK, jobLineOf(j))
}

func (s operatorAPI) cancelJob(w http.ResponseWriter, r *http.Request) *problem {
	j, no := s.job(r, auth.ScopeAdmin)
	if no != nil {
		return no
	}
	j, was, err := s.opts.Jobs.Cancel(r.Context(), j.ID, auth.From(r.Context()).ID)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return refusal(http.StatusNotFound, "unknown_job", "The job no longer exists.")
	case err != nil:
		return s.storeFailed("cancelling a job failed", err)
	case !was:
		return refusal(http.StatusConflict, "job_over", "The job is already over: "+string(j.State)+".")
	default:
		return answer(w, http.StatusOK, jobLineOf(j))
	}
}
