package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
)

// begun are the jobs begun by calls.
type begun struct {
	jobs []store.Job
	anew []bool
	fail error // of Start
	full bool
	away error // of Job
}

func (b *begun) Start(_ context.Context, j store.Job, atOnce int, anew bool) (store.Job, bool, error) {
	if b.fail != nil {
		return store.Job{}, false, b.fail
	}
	if atOnce != 2 {
		return store.Job{}, false, fmt.Errorf("at once: %d", atOnce)
	}
	for _, is := range b.jobs {
		if is.Action == j.Action && (!anew || !is.State.Over()) {
			return is, false, nil
		}
	}
	j.ID, j.State = fmt.Sprintf("job-%d", len(b.jobs)+1), store.JobWaiting
	b.jobs, b.anew = append(b.jobs, j), append(b.anew, anew)
	return j, true, nil
}

func (b *begun) Room(string, string, string, int) error {
	if b.full {
		return fmt.Errorf("two: %w", store.ErrFull)
	}
	return nil
}

func (b *begun) Job(_ context.Context, id string) (store.Job, error) {
	for _, j := range b.jobs {
		if j.ID == id {
			return j, b.away
		}
	}
	return store.Job{}, store.ErrUnknown
}

// withJobs makes every tool of a fixture begin a job.
func (f *fixture) withJobs() {
	f.t.Helper()
	var tools []registry.Entry
	handlers := map[string]registry.Handler{}
	for _, e := range entries() {
		e.Job = &spec.Job{Name: "Report", Longest: "1h", AtOnce: 2}
		tools = append(tools, e)
		handlers[e.ToolID] = registry.BindWork(registry.Bind(func(_ context.Context, c call) (registry.Result, error) {
			return registry.Result{Job: &registry.NewJob{Payload: c.Args, Told: "It is being made."}}, nil
		}), func(context.Context, registry.Work[args, struct{}]) (registry.Result, error) {
			return registry.Result{}, errors.New("no work is done here")
		})
	}
	r, err := registry.Load(registrytest.File(f.t, tools...), registry.Options{Handlers: handlers})
	if err != nil {
		f.t.Fatal(err)
	}
	f.tools = r.Snapshot()
}

// TestRepeatedJobCall: a call for an action whose job exists gets the job's result or progress, never "started"
// again, whether the ledger or the conversation has the answer, and for a reading job too.
func TestRepeatedJobCall(t *testing.T) {
	result := registry.Envelope{OK: true, Data: json.RawMessage(`{"report":"R-1"}`), Meta: registry.Meta{Tool: "book"}}
	failure := registry.Envelope{Error: &registry.Error{Type: registry.ErrorTransient, Message: "The printer is broken."}}
	progress := &store.JobProgress{Text: "page 3"}
	for name, tt := range map[string]struct {
		change func(*store.Job)
		away   error
		want   string // part of the answer
		error  registry.ErrorType
	}{
		"waiting":   {change: func(*store.Job) {}, want: `{"job":"job-1","state":"waiting","message":"This was requested before and is still under way.`},
		"running":   {change: func(j *store.Job) { j.State, j.Progress = store.JobRunning, progress }, want: `"state":"running","progress":{"text":"page 3"`},
		"done":      {change: func(j *store.Job) { j.State, j.Result = store.JobDone, result.Encode() }, want: `"data":{"report":"R-1"}`},
		"failed":    {change: func(j *store.Job) { j.State, j.Result = store.JobFailed, failure.Encode() }, want: "The printer is broken.", error: registry.ErrorTransient},
		"cancelled": {change: func(j *store.Job) { j.State = store.JobCancelled }, want: `"state":"cancelled"`},
		"dropped":   {change: func(j *store.Job) { j.ID = "job-9" }, want: `"state":"ended"`},
		"away":      {change: func(*store.Job) {}, away: store.ErrUnavailable, want: "not available now", error: registry.ErrorTransient},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, _ *fixture) {
				jobs := &begun{}
				f := newFixture(t, Options{Jobs: jobs})
				f.withJobs()
				c := f.talk("s1", "ada")
				first := f.run(c, f.job("c1", "book", `{"name":"a","time":"9"}`))
				if first.Meta.Job != "job-1" {
					t.Fatalf("began %s", first.Encode())
				}
				tt.change(&jobs.jobs[0])
				jobs.away = tt.away
				kept := calls.Again(first, 1)
				repeat := f.job("c3", "pay", `{}`) // a tool that would need an approval
				repeat.Repeats = &kept
				for way, env := range map[string]registry.Envelope{
					"the ledger":       f.run(f.talk("s2", "ada"), f.job("c2", "book", `{"name":"a","time":"9"}`)),
					"the conversation": f.run(c, repeat),
				} {
					text := string(env.Encode())
					if !strings.Contains(text, tt.want) || strings.Contains(text, "started") || !env.Meta.CacheHit || env.OK == (tt.error != "") || tt.error != "" && env.Error.Type != tt.error {
						t.Errorf("%s: %s", way, text)
					}
				}
				if len(jobs.jobs) != 1 {
					t.Errorf("%d jobs", len(jobs.jobs))
				}
			})
		})
	}
	bubble(t, Options{}, func(t *testing.T, _ *fixture) {
		jobs := &begun{}
		f := newFixture(t, Options{Jobs: jobs})
		f.withJobs()
		j := f.job("c1", "look", `{}`)
		f.run(f.talk("s1", "ada"), j)
		jobs.jobs[0].State, jobs.jobs[0].Result = store.JobDone, result.Encode()
		j.Call = "c2"
		if env := f.run(f.talk("s1", "ada"), j); string(env.Data) != `{"report":"R-1"}` || !env.Meta.CacheHit {
			t.Errorf("a job that only reads: %s", env.Encode())
		}
	})
}

// TestNoJobWithoutReport: if the end of a job could not be reported, or the user has too many jobs, no job begins,
// and the user is not asked to approve one.
func TestNoJobWithoutReport(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*begun, *Runner)
		ask    registry.ErrorType // how a question is refused; empty if it is asked
		run    registry.ErrorType // how a call is refused; empty if its job begins
	}{
		"kept":                                   {change: func(*begun, *Runner) {}},
		"a voice session without a conversation": {change: func(_ *begun, c *Runner) { c.c.Session.ConversationID = "" }},
		"the client keeps the conversation":      {change: func(_ *begun, c *Runner) { c.c.Ephemeral = true }, ask: registry.ErrorPermanent, run: registry.ErrorPermanent},
		"an ended session":                       {change: func(_ *begun, c *Runner) { c.c.Session.ConversationID = ""; c.End() }, ask: registry.ErrorPermanent, run: registry.ErrorPermanent},
		"too many":                               {change: func(b *begun, _ *Runner) { b.full = true }, ask: registry.ErrorRateLimit, run: registry.ErrorRateLimit},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, _ *fixture) {
				jobs := &begun{}
				f := newFixture(t, Options{Jobs: jobs})
				f.withJobs()
				c := f.talk("s1", "ada")
				tt.change(jobs, c)
				q := f.ask(c, f.job("c1", "pay", `{}`))
				if refused := q.Refused != nil; refused != (tt.ask != "") || refused && !failed(*q.Refused, tt.ask) || refused == (len(f.questions.All()) > 0) {
					t.Errorf("asked: %+v", q)
				}
				approved := f.job("c2", "pay", `{}`)
				approved.Reference = "REF"
				env := f.run(c, approved)
				if env.OK == (tt.run != "") || tt.run != "" && !failed(env, tt.run) || env.OK != (len(jobs.jobs) == 1) {
					t.Errorf("run: %s, %d jobs", env.Encode(), len(jobs.jobs))
				}
			})
		})
	}
	bubble(t, Options{}, func(t *testing.T, _ *fixture) {
		jobs := &begun{}
		f := newFixture(t, Options{Jobs: jobs})
		f.withJobs()
		for conversation, want := range map[string]int{"": 0, "conv": 1} {
			jobs.jobs = nil
			stored := f.stored(`{}`)
			stored.Conversation, stored.Reference = conversation, "REF"+conversation
			if env, _ := f.e.RunStored(t.Context(), "call_1", f.tools, stored, Conversation{}); env.OK != (want == 1) || len(jobs.jobs) != want {
				t.Errorf("approved after the session of conversation %q: %s, %d jobs", conversation, env.Encode(), len(jobs.jobs))
			}
		}
	})
}

// TestCallBeginsAJob: the call is answered at once with the job's id, which the ledger records; a job that cannot
// begin changes nothing and may be called again.
func TestCallBeginsAJob(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *fixture) {
		jobs := &begun{}
		f := newFixture(t, Options{Jobs: jobs})
		f.withJobs()

		env := f.run(f.talk("s1", "ada"), f.job("c1", "book", `{"name":"a","time":"9"}`))
		if want := `{"job":"job-1","state":"started","message":"It is being made."}`; !env.OK || string(env.Data) != want {
			t.Fatalf("%s", env.Encode())
		}
		j := jobs.jobs[0]
		if j.Tool != "book" || j.Name != "Report" || j.User != "ada" || j.Session != "s1" || j.Conversation == "" || j.Call != "c1" || j.Mode != "voice" || !jobs.anew[0] || !strings.Contains(string(j.Payload), `"a"`) {
			t.Errorf("%+v", j)
		}
		if again := f.run(f.talk("s2", "ada"), f.job("c1", "book", `{"name":"a","time":"9"}`)); again.Meta.Job != "job-1" || !again.Meta.CacheHit || len(jobs.jobs) != 1 {
			t.Errorf("the same action again: %s, %d jobs", again.Encode(), len(jobs.jobs))
		}
		f.run(f.talk("s1", "ada"), f.job("c2", "look", `{}`))
		if len(jobs.jobs) != 2 || jobs.anew[1] || jobs.jobs[1].Action == j.Action {
			t.Errorf("a reading job: %+v", jobs.jobs)
		}

		for name, tt := range map[string]struct {
			fail error
			want registry.ErrorType
			left int // of entries in the ledger
		}{
			"too many": {fmt.Errorf("as many: %w", store.ErrFull), registry.ErrorRateLimit, 0},
			"too big":  {store.ErrTooBig, registry.ErrorTransient, 0},
			"away":     {store.ErrUnavailable, registry.ErrorTransient, 1},
		} {
			jobs.fail = tt.fail
			before := len(f.ledger.Entries())
			env := f.run(f.talk("s1", "ada"), f.job("c-"+name, "wipe", `{"name":"`+name+`"}`))
			if !failed(env, tt.want) || len(f.ledger.Entries())-before != tt.left || env.Error.PartialSideEffects != (tt.left > 0) {
				t.Errorf("%s: %s, %d entries", name, env.Encode(), len(f.ledger.Entries())-before)
			}
		}
		jobs.fail = nil
		c := f.talk("s3", "ada")
		c.c.Ephemeral = true
		if env := f.run(c, f.job("c9", "wipe", `{"name":"x"}`)); !failed(env, registry.ErrorPermanent) || len(jobs.jobs) != 2 {
			t.Errorf("in an ephemeral conversation: %s", env.Encode())
		}
	})
}
