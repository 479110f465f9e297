package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// newJob is a job with a unique name.
func newJob(t *testing.T, name string) Job {
	t.Helper()
	return Job{
		ID: "job-" + strings.ToLower(newMark())[:20], Action: t.Name() + name, Tool: "report", Name: "Report", User: t.Name(),
		Conversation: t.Name(), Session: "s", Mode: "text", Key: "vg-1", Payload: json.RawMessage(`{"year":2026}`), State: JobWaiting, CreatedAt: time.Now().UTC(),
	}
}

func listedJob(s *Store, id string) (Job, bool) {
	all, _ := s.Jobs.List()
	i := slices.IndexFunc(all, func(j Job) bool { return j.ID == id })
	if i < 0 {
		return Job{}, false
	}
	return all[i], true
}

// testJobs: one job of a side effect runs at a time; each write names the revision that its writer has seen, so a
// process that has lost the job writes nothing; the list omits payloads.
func testJobs(t *testing.T, s *Store) {
	jobs, job := s.Jobs, newJob(t, "x")
	first, fresh, err := jobs.Create(t.Context(), job, true)
	if err != nil || !fresh {
		t.Fatalf("%+v, fresh %t, %v", first, fresh, err)
	}
	if got, ok := listedJob(s, job.ID); !ok || got.Payload != nil || got.Revision != first.Revision || got.State != JobWaiting {
		t.Errorf("listed is %+v", got)
	}
	twin := newJob(t, "x")
	if got, fresh, err := jobs.Create(t.Context(), twin, true); err != nil || fresh || got.ID != job.ID {
		t.Errorf("the same side effect again: %+v, fresh %t, %v", got, fresh, err)
	}
	taken := first
	taken.State, taken.Attempt = JobRunning, 1
	if taken, err = jobs.Save(t.Context(), taken); err != nil || taken.Revision <= first.Revision {
		t.Fatalf("%+v, %v", taken, err)
	}
	if _, err := jobs.Save(t.Context(), first); !errors.Is(err, ErrChanged) {
		t.Errorf("with an old revision: %v", err)
	}
	whole, err := jobs.Load(t.Context(), job.ID)
	if err != nil || string(whole.Payload) != `{"year":2026}` || whole.Attempt != 1 || whole.Revision != taken.Revision {
		t.Errorf("loaded is %+v, %v", whole, err)
	}
	whole.State, whole.Result = JobDone, json.RawMessage(`{"ok":true}`)
	if _, err = jobs.Save(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	if got, fresh, err := jobs.Create(t.Context(), twin, false); err != nil || fresh || got.ID != job.ID {
		t.Errorf("a finished side effect, not to be repeated: %+v, fresh %t, %v", got, fresh, err)
	}
	if got, fresh, err := jobs.Create(t.Context(), twin, true); err != nil || !fresh || got.ID != twin.ID {
		t.Errorf("a finished side effect, to be repeated: %+v, fresh %t, %v", got, fresh, err)
	}
	if _, err := jobs.Load(t.Context(), job.ID); !errors.Is(err, ErrUnknown) {
		t.Errorf("the replaced job: %v", err)
	}
}

// testJobsRefused: invalid jobs and jobs beyond a user's limit are errors.
func testJobsRefused(t *testing.T, s *Store) {
	jobs := s.Jobs
	big, wrong := newJob(t, "big"), newJob(t, "wrong")
	big.Payload, wrong.ID = json.RawMessage(`"`+strings.Repeat("a", mostJobBytes)+`"`), "x"
	if _, _, err := jobs.Create(t.Context(), big, true); !errors.Is(err, ErrTooBig) {
		t.Errorf("a job that is too big: %v", err)
	}
	if _, _, err := jobs.Create(t.Context(), wrong, true); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a job without a valid id: %v", err)
	}
	for i := range MostJobsOfUser {
		if _, _, err := jobs.Create(t.Context(), newJob(t, fmt.Sprint(i)), true); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, _, err := jobs.Create(t.Context(), newJob(t, "one more"), true); !errors.Is(err, ErrFull) {
		t.Errorf("one more job of the user: %v", err)
	}
	other := newJob(t, "another user's")
	other.User = "somebody else"
	if _, _, err := jobs.Create(t.Context(), other, true); err != nil {
		t.Errorf("a job of another user: %v", err)
	}
}

// TestJobsOfAllUsersAreBounded: the number of jobs of all users is limited, and an expired job makes room for
// another.
func TestJobsOfAllUsersAreBounded(t *testing.T) {
	s := openTest(t, Options{Memory: true, Logger: testLog(t)})
	jobs := s.Jobs
	fill := func(i int, changed time.Time) {
		job := newJob(t, fmt.Sprint("of many ", i))
		job.User, job.ChangedAt, job.Revision = fmt.Sprint("user ", i), changed, 1<<40 // newer than the bucket's revisions
		jobs.mu.Lock()
		defer jobs.mu.Unlock()
		jobs.put(keyOf(job.Action), copied[Job]{value: job, revision: job.Revision})
	}
	for i := range MostJobs - 1 {
		fill(i, time.Now())
	}
	last, more := newJob(t, "the last"), newJob(t, "one more")
	if _, _, err := jobs.Create(t.Context(), last, true); err != nil {
		t.Fatalf("the last job within the limit: %v", err)
	}
	more.User = "somebody else"
	if _, _, err := jobs.Create(t.Context(), more, true); !errors.Is(err, ErrFull) {
		t.Errorf("one more, of a user without jobs: %v", err)
	}
	if _, ok := listedJob(s, more.ID); ok {
		t.Error("the refused job is listed")
	}
	fill(0, time.Now().Add(-2*JobLife))
	if _, _, err := jobs.Create(t.Context(), more, true); err != nil {
		t.Errorf("when one has expired: %v", err)
	}
}

// testJobLease: a job has one holder until it is released.
func testJobLease(t *testing.T, s *Store) {
	held, err := s.Jobs.Lease(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Jobs.Lease(t.Context(), t.Name()); !errors.Is(err, ErrBusy) {
		t.Errorf("a second one: %v", err)
	}
	held.Release()
	held, err = s.Jobs.Lease(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	held.Release()
}

// TestJobsOutliveTheirProcess: after a restart the job exists, without a holder.
func TestJobsOutliveTheirProcess(t *testing.T) {
	o := Options{Dir: t.TempDir(), Logger: testLog(t)}
	s := openTest(t, o)
	job := newJob(t, "x")
	if _, _, err := s.Jobs.Create(t.Context(), job, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Jobs.Lease(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, o)
	if got, ok := listedJob(s, job.ID); !ok || got.State != JobWaiting || got.Payload != nil {
		t.Errorf("after the restart there is %+v", got)
	}
	if got, err := s.Jobs.Load(t.Context(), job.ID); err != nil || string(got.Payload) != `{"year":2026}` {
		t.Errorf("loaded is %+v, %v", got, err)
	}
	held, err := s.Jobs.Lease(t.Context(), job.ID)
	if err != nil {
		t.Fatal(err)
	}
	held.Release()
}

// TestJobsOfThreeNodes: the other nodes see a write of one node, and get a notification.
func TestJobsOfThreeNodes(t *testing.T) {
	url := startJetStream(t).ClientURL()
	one, two := openTest(t, Options{URL: url, Logger: testLog(t)}), openTest(t, Options{URL: url, Logger: testLog(t)})
	_, changed := two.Jobs.List()
	job, _, err := one.Jobs.Create(t.Context(), newJob(t, "x"), true)
	if err != nil {
		t.Fatal(err)
	}
	testutil.WaitClosed(t, "the other node is notified", changed)
	testutil.WaitUntil(t, "the other node sees it", func() bool { _, ok := listedJob(two, job.ID); return ok })
	job.State = JobCancelled
	if _, err := two.Jobs.Save(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	testutil.WaitUntil(t, "the first node sees the change", func() bool { got, _ := listedJob(one, job.ID); return got.State == JobCancelled })
	if _, err := one.Jobs.Save(t.Context(), job); !errors.Is(err, ErrChanged) {
		t.Errorf("over the other node's write: %v", err)
	}
}

// TestJobsAreForgotten: the copy forgets an expired job, which the server does not report.
func TestJobsAreForgotten(t *testing.T) {
	s := openTest(t, Options{Memory: true, Logger: testLog(t)})
	job, _, err := s.Jobs.Create(t.Context(), newJob(t, "x"), true)
	if err != nil {
		t.Fatal(err)
	}
	age := func(by time.Duration) {
		s.Jobs.mu.Lock()
		defer s.Jobs.mu.Unlock()
		is := s.Jobs.all[keyOf(job.Action)]
		is.value.ChangedAt = is.value.ChangedAt.Add(-by)
		s.Jobs.all[keyOf(job.Action)] = is
	}
	age(2 * ToldJobLife)
	if _, ok := listedJob(s, job.ID); !ok {
		t.Error("a running job is forgotten")
	}
	job.ToldAt = time.Now()
	if job, err = s.Jobs.Save(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	age(2 * ToldJobLife)
	if got, ok := listedJob(s, job.ID); ok {
		t.Errorf("stored is %+v", got)
	}
}
