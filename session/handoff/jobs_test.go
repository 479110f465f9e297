package handoff

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"voicegw/internal/user"
	"voicegw/store"
)

// endedJobs are jobs that have ended.
type endedJobs struct {
	owed     []store.Job
	recorded []string
}

func (e *endedJobs) OwedTo(_ context.Context, conversation string) (in []store.Job, err error) {
	for _, j := range e.owed {
		if j.Conversation == conversation {
			in = append(in, j)
		}
	}
	return in, nil
}

func (e *endedJobs) Told(_ context.Context, id string) (bool, error) {
	e.recorded = append(e.recorded, id)
	return true, nil
}

// TestEndedJobIsReported: a voice session gets the ended job of its user in its conversation once, although that could
// not be recorded; other users do not get it, and the session gets no job of another user.
func TestEndedJobIsReported(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := New(s, "default")
	job := store.Job{ID: "job-0123456789abcdef", Name: "Report", Tool: "report_make", User: "ada", Conversation: "c-1", State: store.JobDone, Result: json.RawMessage(`{"ok":true,"data":"R-1"}`)}
	others := job // of the previous user of the conversation
	others.ID, others.User, others.Result = "job-of-eve-000000000", "eve", json.RawMessage(`{"ok":true,"data":"R-2"}`)
	jobs := &endedJobs{owed: []store.Job{others, job}}
	d.SetJobs(jobs)
	for i := range 2 {
		got, err := d.Enter(t.Context(), "c-1", user.Must("ada"))
		if err != nil || strings.Count(got, "(reference job-0123456789abcdef)") != 1 || !strings.Contains(got, "R-1") || strings.Contains(got, "job-of-eve") || len(jobs.recorded) != i+1 || jobs.recorded[i] != job.ID {
			t.Errorf("%d: got %q, recorded %v, %v", i, got, jobs.recorded, err)
		}
	}
	if got, err := d.Enter(t.Context(), "c-1", user.Must("eve")); err == nil || strings.Contains(got, "job-") || len(jobs.recorded) != 2 {
		t.Errorf("eve gets %q, %v", got, err)
	}
}
