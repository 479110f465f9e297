package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"voicegw/store"
)

// fakeJobs are jobs in memory.
type fakeJobs struct {
	jobs []store.Job
	by   string // the principal that cancelled a job
	fail error
}

func (f *fakeJobs) List(user, conversation string) (list []store.Job) {
	for _, j := range f.jobs {
		if (user == "" || j.User == user) && (conversation == "" || j.Conversation == conversation) {
			list = append(list, j)
		}
	}
	return list
}

func (f *fakeJobs) Job(_ context.Context, id string) (store.Job, error) {
	for _, j := range f.jobs {
		if j.ID == id {
			return j, f.fail
		}
	}
	return store.Job{}, store.ErrUnknown
}

func (f *fakeJobs) Cancel(_ context.Context, id, by string) (store.Job, bool, error) {
	j, err := f.Job(context.Background(), id)
	if err != nil || j.State.Over() {
		return j, false, err
	}
	f.by, j.State = by, store.JobCancelled
	return j, true, nil
}

// TestJobs: a caller that may inspect sees all jobs, a user sees its own; an admin, and the user, may cancel a running
// one.
func TestJobs(t *testing.T) {
	begun := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	f := &fakeJobs{jobs: []store.Job{
		{ID: "job-a", Tool: "report", Name: "Report", User: "ada", Conversation: "c-1", State: store.JobRunning, Attempt: 1, CreatedAt: begun, Progress: &store.JobProgress{Text: "Page 1", Fraction: new(0.5), At: begun}, Payload: json.RawMessage("\"secret\"")},
		{ID: "job-b", Tool: "report", Name: "Report", User: "eve", Conversation: "c-2", State: store.JobDone, CreatedAt: begun, EndedAt: begun, Result: json.RawMessage("{\"ok\":true}")},
	}}
	callers := everyCaller(t)
	s := everyRoute(t, func(o *Options) { o.Auth, o.Jobs = callers.current, f })
	for _, tc := range []struct {
		who, method, path string
		status            int
		says, hides       string
	}{
		{"operator", "GET", "/v1/jobs", 200, `"id":"job-b"`, "secret"},
		{"operator", "GET", "/v1/jobs?user=ada&conversation_id=c-1", 200, `"progress":{"text":"Page 1","fraction":0.5,"at":"2026-11-26T09:00:00.000Z"}`, "job-b"},
		{"operator", "GET", "/v1/jobs?user=unknown", 200, `{"jobs":[]}`, "job-"},
		{"operator", "GET", "/v1/jobs?since=1", 400, "invalid_message", ""},
		{"operator", "GET", "/v1/jobs/job-b", 200, `"envelope":{"ok":true}`, ""},
		{"operator", "GET", "/v1/jobs/job-c", 404, "unknown_job", ""},
		{"key:inspect", "GET", "/v1/jobs", 200, `"id":"job-b"`, ""},
		{"key:inspect", "DELETE", "/v1/jobs/job-a", 403, "scope_missing", ""},
		{"key:voice", "GET", "/v1/jobs", 400, "no_user", "job-"},
		{"user:voice", "GET", "/v1/jobs", 200, `"id":"job-a"`, "job-b"},
		{"user:voice", "GET", "/v1/jobs?user=eve", 200, `"id":"job-a"`, "job-b"},
		{"user:voice", "GET", "/v1/jobs/job-b", 404, "unknown_job", "eve"},
		{"user:voice", "DELETE", "/v1/jobs/job-b", 404, "unknown_job", ""},
		{"user:inspect", "GET", "/v1/jobs", 200, `"id":"job-a"`, "job-b"},
		{"user:voice", "DELETE", "/v1/jobs/job-a", 200, `"state":"cancelled"`, ""},
		{"operator", "DELETE", "/v1/jobs/job-b", 409, "job_over", ""},
		{"anonymous", "GET", "/v1/jobs", 401, "", "job-"},
	} {
		w := ask(s, tc.method, tc.path, func(r *http.Request) {
			r.Host = "localhost"
			r.Header.Del("Authorization")
			if secret := callers.secrets[tc.who]; secret != "" {
				r.Header.Set("Authorization", "Bearer "+secret)
			}
		})
		if got := w.Body.String(); w.Code != tc.status || !strings.Contains(got, tc.says) || tc.hides != "" && strings.Contains(got, tc.hides) {
			t.Errorf("%s: %s %s: %d %s", tc.who, tc.method, tc.path, w.Code, got)
		}
	}
	if f.by != "jwt:tests:ada" {
		t.Errorf("cancelled by %q", f.by)
	}
	f.fail = errors.New("the store is away")
	if w := does(s, "GET", "/v1/jobs/job-a", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without a store: %d %s", w.Code, w.Body)
	}
}
