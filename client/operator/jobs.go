package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"voicegw/internal/textutil"
)

// Jobs is the response of GET /v1/jobs: the long work that calls have started.
type Jobs struct {
	Jobs []Job `json:"jobs"`
}

// Job is a job of a gateway.
type Job struct {
	ID           string       `json:"id"`
	Tool         string       `json:"tool"`
	Name         string       `json:"name"`
	State        string       `json:"state"`
	User         string       `json:"user"`
	Conversation string       `json:"conversation_id"`
	Session      string       `json:"session_id"`
	Agent        string       `json:"agent,omitempty"`
	CallID       string       `json:"call_id,omitempty"`
	Attempt      int          `json:"attempt"`
	Node         string       `json:"node,omitempty"`
	CreatedAt    time.Time    `json:"created_at"`
	StartedAt    time.Time    `json:"started_at,omitzero"`
	EndedAt      time.Time    `json:"ended_at,omitzero"`
	ToldAt       time.Time    `json:"told_at,omitzero"`
	Progress     *JobProgress `json:"progress,omitempty"`
}

// JobProgress is the job's own report.
type JobProgress struct {
	Text     string    `json:"text,omitempty"`
	Fraction *float64  `json:"fraction,omitempty"`
	At       time.Time `json:"at"`
}

// Jobs lists the jobs of a user, or of all users if empty.
func (o *Client) Jobs(ctx context.Context, user string) (list Jobs, err error) {
	path := "/v1/jobs"
	if user != "" {
		path += "?user=" + url.QueryEscape(user)
	}
	err = o.Ask(ctx, http.MethodGet, path, &list)
	return list, err
}

// CancelJob cancels a running job.
func (o *Client) CancelJob(ctx context.Context, id string) (Job, error) {
	var j Job
	err := o.Ask(ctx, http.MethodDelete, "/v1/jobs/"+segment(id), &j)
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == "unknown_job" {
		return j, fmt.Errorf("no job %s; run voicegw jobs list", textutil.Quote(id))
	}
	return j, err
}

// Table formats the jobs for the width of a file.
func (l Jobs) Table(file any) string {
	if len(l.Jobs) == 0 {
		return "No jobs.\n"
	}
	rows := [][]string{{"ID", "NAME", "STATE", "BEGUN", "FOR", "ATTEMPT", "TOLD", "USER", "AT"}}
	for _, j := range l.Jobs {
		end, at := j.EndedAt, ""
		if end.IsZero() {
			end = time.Now()
		}
		if p := j.Progress; p != nil {
			at = p.Text
			if p.Fraction != nil {
				at = fmt.Sprintf("%.0f %% %s", 100**p.Fraction, at)
			}
		}
		rows = append(rows, []string{
			textutil.Quote(j.ID), textutil.Quote(j.Name), textutil.Quote(j.State), j.CreatedAt.Local().Format(time.DateTime),
			max(0, end.Sub(j.CreatedAt)).Round(time.Second).String(), strconv.Itoa(j.Attempt),
			textutil.YesNo(!j.ToldAt.IsZero()), orDash(j.User), orDash(at),
		})
	}
	return textutil.Table(file, rows)
}
