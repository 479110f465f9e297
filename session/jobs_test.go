package session

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/store"
	"voicegw/transport"
)

// keptJobs are the jobs of a test. The next `away` saves fail.
type keptJobs struct {
	mu    sync.Mutex
	jobs  map[string]store.Job
	loads int
	away  int
}

func (k *keptJobs) Job(_ context.Context, id string) (store.Job, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loads++
	j, ok := k.jobs[id]
	if !ok {
		return j, store.ErrUnknown
	}
	return j, nil
}

func (k *keptJobs) Told(_ context.Context, id string) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.away > 0 {
		k.away--
		return false, store.ErrUnavailable
	}
	j := k.jobs[id]
	first := j.ToldAt.IsZero()
	j.ToldAt = time.Now()
	k.jobs[id] = j
	return first, nil
}

// owed lists the jobs whose end has not been reported, without their results.
func (k *keptJobs) owed() (list []store.Job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range k.jobs {
		if j.Owed() {
			j.Result = nil
			list = append(list, j)
		}
	}
	return list
}

func ended(id, conversation, session, user string) store.Job {
	return store.Job{
		ID: id, Tool: "report_make", Name: "Yearly report", Conversation: conversation, Session: session, User: user, State: store.JobDone,
		Result: json.RawMessage(`{"ok":true,"data":"` + id + `"}`),
	}
}

// jobTexts counts the texts about a job that a model got.
func jobTexts(model *fakeConn, id string) (n int) {
	for _, cmd := range model.Commands() {
		if text, ok := cmd.(transport.UserText); ok && strings.Contains(text.Text, "(reference "+id+")") && strings.Contains(text.Text, `"data":"`+id+`"`) {
			n++
		}
	}
	return n
}

// TestJobEndsDuringSession: the model gets the end of a job of its conversation and user once, although the end is
// reported again and the store fails to record this. It gets no other job.
func TestJobEndsDuringSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		st.connect(startWith(`,"conversation_id":"c-7","client":{"id":"ada"}`))
		model := st.fake.Accept(t)
		synctest.Wait()
		id := st.m.Sessions()[0].ID
		jobs := &keptJobs{away: 2, jobs: map[string]store.Job{
			"job-mine": ended("job-mine", "c-7", id, "ada"), "job-eve": ended("job-eve", "c-7", id, "eve"), "job-other": ended("job-other", "c-8", id, "ada"),
		}}
		for range 5 {
			st.m.JobsEnded(jobs.owed(), jobs)
			pass(2 * time.Second)
			synctest.Wait()
		}
		if n := jobTexts(model, "job-mine"); n != 1 || jobs.jobs["job-mine"].ToldAt.IsZero() {
			t.Errorf("the model got %d texts, recorded at %v", n, jobs.jobs["job-mine"].ToldAt)
		}
		if jobTexts(model, "job-eve")+jobTexts(model, "job-other") > 0 || len(jobs.owed()) != 2 {
			t.Errorf("the model got jobs of others; not reported: %v", jobs.owed())
		}
	})
}

// TestJobProgressReachesTheClient: the client of the conversation's session gets the progress of a job, other clients
// do not; the model gets nothing.
func TestJobProgressReachesTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c := st.connect(startWith(`,"conversation_id":"c-7","client":{"id":"ada"}`))
		model := st.fake.Accept(t)
		synctest.Wait()
		before := len(model.Commands())
		for _, j := range []store.Job{{ID: "job-eve", User: "eve", Conversation: "c-7"}, {ID: "job-other", User: "ada", Conversation: "c-8"}, {ID: "job-mine", User: "ada", Conversation: "c-7"}} {
			j.Tool, j.Name, j.State, j.Progress = "report_make", "Yearly report", store.JobRunning, &store.JobProgress{Text: "Chapter 2 of 4", Fraction: new(0.25)}
			st.m.JobProgressed(j)
			synctest.Wait()
			got := c.count("job.progress")
			if want := map[bool]int{true: 1}[j.ID == "job-mine"]; got != want {
				t.Errorf("after %s the client has %d messages", j.ID, got)
			}
		}
		m := c.last(t, "job.progress")
		if m["job_id"] != "job-mine" || m["tool"] != "report_make" || m["name"] != "Yearly report" || m["text"] != "Chapter 2 of 4" || m["fraction"] != 0.25 || m["turn"] != nil {
			t.Errorf("%v", m)
		}
		if n := len(model.Commands()) - before; n != 0 {
			t.Errorf("the model got %d commands", n)
		}
	})
}

// TestJobWaitsForSilence: a job that ends while the user speaks is read once, and reported after the answer to the
// user. A session without a conversation gets its own jobs.
func TestJobWaitsForSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		client := st.connect(startText)
		model := st.fake.Accept(t)
		synctest.Wait()
		id, who := st.m.Sessions()[0].ID, st.m.Sessions()[0].User // without a conversation the job has the session's id
		jobs := &keptJobs{jobs: map[string]store.Job{"job-mine": ended("job-mine", id, id, who), "job-other": ended("job-other", "voice-other", "voice-other", who)}}
		model.Emit(transport.SpeechStarted{Item: "u1"})
		synctest.Wait()
		for range 3 {
			st.m.JobsEnded(jobs.owed(), jobs)
			synctest.Wait()
		}
		if n := jobTexts(model, "job-mine"); n != 0 || jobs.loads != 1 {
			t.Errorf("while the user spoke the model got %d texts, and the job was read %d times", n, jobs.loads)
		}
		model.Emit(transport.SpeechStopped{Item: "u1"})
		answers(client, model, "r1", "a1", "Good morning.")
		pass(10 * time.Second)
		synctest.Wait()
		if n := jobTexts(model, "job-mine"); n != 1 || jobs.jobs["job-mine"].ToldAt.IsZero() || jobTexts(model, "job-other") != 0 {
			t.Errorf("the model got %d texts, recorded at %v", n, jobs.jobs["job-mine"].ToldAt)
		}
	})
}
