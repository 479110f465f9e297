package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
)

// begun are the jobs that calls have begun.
type begun struct {
	jobs []store.Job
	anew []bool
	fail error
}

func (b *begun) Start(_ context.Context, j store.Job, atOnce int, anew bool) (string, error) {
	if b.fail != nil {
		return "", b.fail
	}
	if atOnce != 2 {
		return "", fmt.Errorf("at once: %d", atOnce)
	}
	b.jobs, b.anew = append(b.jobs, j), append(b.anew, anew)
	return fmt.Sprintf("job-%d", len(b.jobs)), nil
}

// TestCallBeginsAJob: the call is answered at once, with the job's id, and the ledger has that answer; what
// cannot be begun has changed nothing and may be called again.
func TestCallBeginsAJob(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *fixture) {
		jobs := &begun{}
		f := newFixture(t, Options{Jobs: jobs})
		var tools []registry.Entry
		handlers := map[string]registry.Handler{}
		for _, e := range entries() {
			e.Job = &spec.Job{Name: "Report", Longest: "1h", AtOnce: 2}
			tools = append(tools, e)
			handlers[e.ToolID] = registry.BindWork(registry.Bind(func(_ context.Context, c call) (registry.Result, error) {
				return registry.Result{Job: &registry.NewJob{Payload: c.Args, Told: "It is being made."}}, nil
			}), func(context.Context, registry.Work[args, struct{}]) (registry.Result, error) {
				return registry.Result{}, errors.New("nobody does it here")
			})
		}
		r, err := registry.Load(registrytest.File(t, tools...), registry.Options{Handlers: handlers})
		if err != nil {
			t.Fatal(err)
		}
		f.tools = r.Snapshot()

		env := f.run(f.talk("s1", "ada"), f.job("c1", "book", `{"name":"a","time":"9"}`))
		if want := `{"job":"job-1","state":"started","message":"It is being made."}`; !env.OK || string(env.Data) != want {
			t.Fatalf("%s", env.Encode())
		}
		j := jobs.jobs[0]
		if j.Tool != "book" || j.Name != "Report" || j.User != "ada" || j.Session != "s1" || j.Conversation == "" || j.Call != "c1" || j.Mode != "voice" || !jobs.anew[0] || !strings.Contains(string(j.Payload), `"a"`) {
			t.Errorf("%+v", j)
		}
		if again := f.run(f.talk("s2", "ada"), f.job("c1", "book", `{"name":"a","time":"9"}`)); string(again.Data) != string(env.Data) || !again.Meta.CacheHit || len(jobs.jobs) != 1 {
			t.Errorf("the same deed again: %s, %d jobs", again.Encode(), len(jobs.jobs))
		}
		f.run(f.talk("s1", "ada"), f.job("c2", "look", `{}`))
		if len(jobs.jobs) != 2 || jobs.anew[1] || jobs.jobs[1].Deed == j.Deed {
			t.Errorf("one that only reads: %+v", jobs.jobs)
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
		c.c.Unkept = true
		if env := f.run(c, f.job("c9", "wipe", `{"name":"x"}`)); !failed(env, registry.ErrorPermanent) || len(jobs.jobs) != 2 {
			t.Errorf("in a conversation that nobody keeps: %s", env.Encode())
		}
	})
}
