package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"voicegw/internal/user"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// endedJobs are jobs whose end is not reported yet.
type endedJobs struct {
	mu       sync.Mutex // guards the following fields
	owed     []store.Job
	reported map[string]int
	fail     error // of Told
	away     error // of OwedTo
}

func (e *endedJobs) OwedTo(_ context.Context, conversation string) ([]store.Job, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var in []store.Job
	for _, j := range e.owed {
		if j.Conversation == conversation && (e.reported[j.ID] == 0 || e.fail != nil) {
			in = append(in, j)
		}
	}
	return in, e.away
}

func (e *endedJobs) Told(_ context.Context, id string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reported[id]++
	return e.reported[id] == 1, e.fail
}

// TestJobIsReportedOnce: the end of a job is reported to the model before the user's next message, once, even if the
// report could not be recorded; no other conversation gets it.
func TestJobIsReportedOnce(t *testing.T) {
	job := func(id, who, talk string) store.Job {
		return store.Job{ID: id, Name: "Report", Tool: "report_make", User: who, Conversation: talk, State: store.JobDone, Result: json.RawMessage(`{"ok":true,"data":"R-1"}`)}
	}
	ended := &endedJobs{reported: map[string]int{}, fail: errors.New("the store is down"), away: errors.New("the store is down"), owed: []store.Job{
		job("job-0123456789abcdef", "ada", "c-1"), job("job-of-eve", "eve", "c-1"), job("job-elsewhere", "ada", "c-2"),
	}}
	bubble(t, fixtureSetting{options: Options{Jobs: ended}}, func(t *testing.T, f *fixture) {
		say := func(text string, history []textmodel.Message) string {
			if _, err := f.respond(t.Context(), Request{ConversationID: "c-1", User: user.Must("ada"), Message: text, History: history}, says("I see.")); err != nil {
				t.Fatal(err)
			}
			return transcript(f.last())
		}
		if got := say("One", nil); strings.Contains(got, "job-") {
			t.Errorf("reported while the store is down: %s", got)
		}
		ended.away = nil
		const notice = `"Report", which report_make began earlier (reference job-0123456789abcdef), has ended.`
		if got := say("Two", nil); strings.Count(got, notice) != 1 || strings.Index(got, notice) > strings.Index(got, "user: Two") || !strings.Contains(got, `"R-1"`) || strings.Contains(got, "job-of-eve") || strings.Contains(got, "job-elsewhere") {
			t.Errorf("the turn after its end: %s", got)
		}
		// The report could not be recorded; it is recorded now.
		ended.fail = nil
		ended.reported = map[string]int{}
		if got := say("Three", nil); strings.Count(got, notice) != 1 || ended.reported["job-0123456789abcdef"] != 1 || len(ended.reported) != 1 {
			t.Errorf("recorded %v, and the turn after that: %s", ended.reported, got)
		}
		ended.reported = map[string]int{}
		if got := say("Four", []textmodel.Message{{Role: textmodel.RoleUser, Text: "Before"}}); strings.Contains(got, "job-") || len(ended.reported) != 0 {
			t.Errorf("a conversation that its client keeps got it: %s", got)
		}
	})
}
