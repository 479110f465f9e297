package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"voicegw/internal/auth"
	"voicegw/protocol"
	"voicegw/store"
)

// Jobs manages background jobs; *jobs.Runner implements it. It must be safe for concurrent use.
type Jobs interface {
	// List returns the jobs of a user and a conversation, oldest first; empty names match all.
	List(user, conversation string) []store.Job
	// Job returns a job with its result. The error is store.ErrUnknown or wraps store.ErrUnavailable.
	Job(ctx context.Context, id string) (store.Job, error)
	// Cancel cancels a job; was is false if it was already over.
	Cancel(ctx context.Context, id, by string) (j store.Job, was bool, err error)
}

const jobsPath = "/v1/jobs"

// jobLine is a job. Times are RFC 3339 in UTC with milliseconds.
type jobLine struct {
	ID           string        `json:"id"`
	Tool         string        `json:"tool"`
	Name         string        `json:"name"`
	State        string        `json:"state"`
	User         string        `json:"user"`
	Conversation string        `json:"conversation_id"`
	Session      string        `json:"session_id"`
	Agent        string        `json:"agent,omitempty"`
	CallID       string        `json:"call_id,omitempty"`
	Attempt      int           `json:"attempt"`
	Node         string        `json:"node,omitempty"`
	CreatedAt    protocol.Time `json:"created_at"`
	StartedAt    protocol.Time `json:"started_at,omitzero"`
	EndedAt      protocol.Time `json:"ended_at,omitzero"`
	ToldAt       protocol.Time `json:"told_at,omitzero"`
	Progress     *jobsReport   `json:"progress,omitempty"`
	// Envelope is the result; omitted in lists.
	Envelope json.RawMessage `json:"envelope,omitempty"`
}

// jobsReport is a job's reported progress.
type jobsReport struct {
	Text     string        `json:"text,omitempty"`
	Fraction *float64      `json:"fraction,omitempty"`
	At       protocol.Time `json:"at"`
}

func jobLineOf(j store.Job) jobLine {
	l := jobLine{
		ID: j.ID, Tool: j.Tool, Name: j.Name, State: string(j.State), User: j.User, Conversation: j.Conversation, Session: j.Session,
		Agent: j.Agent, CallID: j.Call, Attempt: j.Attempt, Node: j.Node, CreatedAt: protocol.Time{Time: j.CreatedAt},
		StartedAt: protocol.Time{Time: j.StartedAt},
		EndedAt:   protocol.Time{Time: j.EndedAt}, ToldAt: protocol.Time{Time: j.ToldAt}, Envelope: j.Result,
	}
	if p := j.Progress; p != nil {
		l.Progress = &jobsReport{Text: p.Text, Fraction: p.Fraction, At: protocol.Time{Time: p.At}}
	}
	return l
}

// jobsOf returns the user whose jobs the caller may see; empty means all users. all is the scope for that. ok is
// false if the request was answered.
func jobsOf(w http.ResponseWriter, r *http.Request, all auth.Scopes) (who string, ok bool) {
	p := auth.From(r.Context())
	if only := mine(r.Context()); !only.IsZero() {
		return only.String(), true
	}
	if !p.May(all) {
		problem(w, http.StatusBadRequest, "no_user",
			"The credentials in Authorization belong to no user; to access all users' jobs they need the scope "+all.String()+".")
		return "", false
	}
	return "", true
}

// listJobs lists the caller's jobs, or those of ?user= and ?conversation_id=.
func (s operatorAPI) listJobs(w http.ResponseWriter, r *http.Request) {
	only, ok := jobsOf(w, r, auth.ScopeInspect)
	if !ok {
		return
	}
	q := r.URL.Query()
	who, wrong := listParameters(q, "conversation_id")
	if wrong != "" {
		problem(w, http.StatusBadRequest, "invalid_message", wrong)
		return
	}
	if only != "" {
		who = only // overrides the parameter
	}
	lines := []jobLine{}
	for _, j := range s.opts.Jobs.List(who, q.Get("conversation_id")) {
		lines = append(lines, jobLineOf(j))
	}
	answer(w, http.StatusOK, map[string]any{"jobs": lines})
}

// job returns the request's job, or answers. Another user's job is reported as unknown.
func (s operatorAPI) job(w http.ResponseWriter, r *http.Request, all auth.Scopes) (j store.Job, ok bool) {
	only, ok := jobsOf(w, r, all)
	if !ok {
		return j, false
	}
	id := r.PathValue("id")
	j, err := s.opts.Jobs.Job(r.Context(), id)
	switch {
	case errors.Is(err, store.ErrUnknown), err == nil && only != "" && j.User != only:
		problem(w, http.StatusNotFound, "unknown_job", "There is no job "+clip(id)+
			"; see GET /v1/jobs. Finished jobs are deleted an hour after the conversation gets their result, or after three days.")
		return j, false
	case err != nil:
		s.storeFailed(w, "reading a job failed", err)
		return j, false
	}
	return j, true
}

func (s operatorAPI) showJob(w http.ResponseWriter, r *http.Request) {
	if j, ok := s.job(w, r, auth.ScopeInspect); ok {
		answer(w, http.StatusOK, jobLineOf(j))
	}
}

func (s operatorAPI) cancelJob(w http.ResponseWriter, r *http.Request) {
	j, ok := s.job(w, r, auth.ScopeAdmin)
	if !ok {
		return
	}
	j, was, err := s.opts.Jobs.Cancel(r.Context(), j.ID, auth.From(r.Context()).ID)
	switch {
	case errors.Is(err, store.ErrUnknown):
		problem(w, http.StatusNotFound, "unknown_job", "The job no longer exists.")
	case err != nil:
		s.storeFailed(w, "cancelling a job failed", err)
	case !was:
		problem(w, http.StatusConflict, "job_over", "The job is already over: "+string(j.State)+".")
	default:
		answer(w, http.StatusOK, jobLineOf(j))
	}
}
