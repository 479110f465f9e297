package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
)

// memory is a store of jobs in memory, shared by several processes.
type memory struct {
	mu       sync.Mutex // guards the following fields
	jobs     map[string]store.Job
	held     map[string]*lease
	changed  chan struct{}
	revision uint64
	fail     error // the error of each write
	saved    int
}

func newMemory() *memory {
	return &memory{jobs: map[string]store.Job{}, held: map[string]*lease{}, changed: make(chan struct{})}
}

type lease struct {
	m    *memory
	id   string
	lost func()
}

func (l *lease) Release() {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.held[l.id] == l {
		delete(l.m.held, l.id)
	}
}

func (l *lease) Check(context.Context) error { return nil }

func (l *lease) WhenLost(f func()) { l.lost = f }

// put writes a job. The caller must hold mu.
func (m *memory) put(j store.Job) store.Job {
	m.revision++
	j.Revision = m.revision
	m.jobs[j.Action] = j
	close(m.changed)
	m.changed = make(chan struct{})
	return j
}

func (m *memory) Create(_ context.Context, j store.Job, anew bool) (store.Job, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, has := m.jobs[j.Action]; has && (!anew || !old.State.Over()) {
		return old, false, nil
	}
	return m.put(j), true, m.fail
}

func (m *memory) Save(_ context.Context, j store.Job) (store.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved++
	switch old, has := m.jobs[j.Action]; {
	case m.fail != nil:
		return store.Job{}, m.fail
	case !has || old.Revision != j.Revision:
		return store.Job{}, store.ErrChanged
	}
	return m.put(j), nil
}

func (m *memory) Load(_ context.Context, id string) (store.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if j.ID == id {
			return j, nil
		}
	}
	return store.Job{}, store.ErrUnknown
}

func (m *memory) List() ([]store.Job, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.Job
	for _, j := range m.jobs {
		j.Payload, j.Result = nil, nil
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b store.Job) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, m.changed
}

func (m *memory) Room(string) error { return nil }

func (m *memory) Lease(_ context.Context, id string) (store.Held, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[id] != nil {
		return nil, store.ErrBusy
	}
	m.held[id] = &lease{m: m, id: id}
	return m.held[id], nil
}

// payload is the payload of the tool's work.
type payload struct{ Ref string }

type needs struct {
	Messenger registry.Messenger
	Progress  registry.Progress
	Audit     registry.Audit
}

type working = registry.Work[payload, needs]

// site is a store and its processes.
type site struct {
	t    *testing.T
	keep *memory
	do   func(context.Context, working) (registry.Result, error)

	mu    sync.Mutex // guards the following fields
	began []working
	lines []audit.Record
	ended []store.Job
	owing map[string]string   // by process, the last job that it was asked to deliver
	told  map[string][]string // by process, the progress that it was informed of
}

func (s *site) tools() *registry.Snapshot {
	object := json.RawMessage(`{"type":"object","properties":{"Ref":{"type":"string"}},"additionalProperties":false}`)
	declared := spec.Spec{
		ToolID: "report", Version: "1.0.0", Description: "Makes a report.", Category: spec.CategoryAction, SideEffects: spec.SideEffectsWrites,
		AllowedModes: []spec.Mode{spec.ModeText, spec.ModeVoice}, LatencyBudgetMS: 1000, TimeoutMS: 1000, Parameters: object,
		Job: &spec.Job{Name: "Report", Longest: "10m", AtOnce: 2},
	}
	begin := func(_ context.Context, c registry.Call[payload, needs]) (registry.Result, error) {
		return registry.Result{Job: &registry.NewJob{Payload: c.Args, Told: "It is being made."}}, nil
	}
	work := func(ctx context.Context, w working) (registry.Result, error) {
		s.mu.Lock()
		s.began = append(s.began, w)
		s.mu.Unlock()
		return s.do(ctx, w)
	}
	r, err := registry.Load(registrytest.File(s.t, registry.Entry{Spec: declared, Summary: "Makes a report.", Guide: "# report\n", Forms: registry.Forms{
		OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"Ref":{"type":"STRING"}}}`),
	}}), registry.Options{Handlers: map[string]registry.Handler{"report": registry.BindWork(registry.Bind(begin), work)}})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Snapshot()
}

// process starts a Runner, which ends with the test.
func (s *site) process(name string) *Runner {
	tools := s.tools()
	r := New(Options{
		Keep: s.keep, Tools: func() *registry.Snapshot { return tools }, Node: name,
		Audit: func(r audit.Record) { s.mu.Lock(); defer s.mu.Unlock(); s.lines = append(s.lines, r) },
		Ended: func(j store.Job) { s.mu.Lock(); defer s.mu.Unlock(); s.ended = append(s.ended, j) },
		Owed: func(owed []store.Job) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.owing[name] = owed[len(owed)-1].ID
		},
		Progressed: func(j store.Job) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told[name] = append(s.told[name], j.Progress.Text)
		},
	})
	s.t.Cleanup(func() { _ = r.Close(context.Background()) }) // the test has already checked its error
	return r
}

// bubble runs a test in fake time.
func bubble(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, &site{t: t, keep: newMemory(), owing: map[string]string{}, told: map[string][]string{}})
	})
}

func job(ref string) store.Job {
	return store.Job{
		Action: "deed " + ref, Tool: "report", Name: "Report", User: "ada", Conversation: "c-1", Session: "chat-c-1", Mode: "text", Turn: 1, Call: "t1",
		Payload: json.RawMessage(`{"Ref":"` + ref + `"}`),
	}
}

func (s *site) start(r *Runner, ref string) string {
	s.t.Helper()
	is, _, err := r.Start(s.t.Context(), job(ref), 2, true)
	if err != nil {
		s.t.Fatal(err)
	}
	return is.ID
}

func (s *site) get(id string) store.Job {
	s.t.Helper()
	j, err := s.keep.Load(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

func (s *site) events() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.lines {
		all = append(all, strings.TrimSpace(string(r.Event)+" "+string(r.ErrorType)))
	}
	return all
}

// takes simulates work of a duration, unless it is stopped.
func takes(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func pass(d time.Duration) {
	<-time.After(d) // in fake time
	synctest.Wait()
}

// runs are the attempts so far, ends is the number of ended jobs.
func (s *site) runs() []working {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.began)
}

// owes returns the last job that a process was asked to deliver, and clears it.
func (s *site) owes(process string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.owing[process]
	delete(s.owing, process)
	return id
}

func (s *site) ends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ended)
}

func (m *memory) writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saved
}

func (m *memory) leases() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.held)
}

// TestJob: a job runs once, its result is owed to its conversation, and delivered once.
func TestJob(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.do = func(ctx context.Context, w working) (registry.Result, error) {
			takes(ctx, time.Minute)
			return registry.Result{Data: w.Payload.Ref}, errors.Join(w.Needs.Audit.Note("made", 1), w.Needs.Messenger.Send("nobody", 1))
		}
		one, _ := s.process("one"), s.process("two")
		id := s.start(one, "2026")
		if again := s.start(one, "2026"); again != id {
			t.Errorf("the same side effect is another job: %s and %s", id, again)
		}
		pass(time.Second)
		if j := s.get(id); j.State != store.JobRunning || j.Attempt != 1 || j.Node == "" {
			t.Errorf("%+v", j)
		}
		if owed, err := one.OwedTo(t.Context(), "c-1"); len(owed) != 0 || err != nil {
			t.Errorf("owed too early: %+v, %v", owed, err)
		}
		if s.owes("one") != "" || s.owes("two") != "" {
			t.Error("a running job is reported as owed")
		}
		pass(time.Minute)
		for range 2 { // repeatedly, on each node
			if one, two := s.owes("one"), s.owes("two"); one != id || two != id {
				t.Errorf("reported as owed: %q and %q", one, two)
			}
			pass(lookEvery)
		}
		owed, err := one.OwedTo(t.Context(), "c-1")
		if err != nil || len(owed) != 1 || owed[0].ID != id || owed[0].State != store.JobDone || !strings.Contains(string(owed[0].Result), `"data":"2026"`) || owed[0].Payload != nil {
			t.Fatalf("owed: %+v, %v", owed, err)
		}
		var firsts int
		for range 2 {
			if first, err := one.Told(t.Context(), id); err != nil {
				t.Error(err)
			} else if first {
				firsts++
			}
		}
		if owed, _ := one.OwedTo(t.Context(), "c-1"); firsts != 1 || len(owed) != 0 || len(s.runs()) != 1 || s.ends() != 1 {
			t.Errorf("delivered %d times, %d owed, begun %d times, ended %d times", firsts, len(owed), len(s.runs()), s.ends())
		}
		if got := s.events(); !slices.Equal(got, []string{"job_started", "tool_note", "job_ended", "job_told"}) {
			t.Errorf("the audit: %q", got)
		}
		w := s.runs()[0]
		if w.Attempt != 1 || w.Job != id || !strings.HasPrefix(w.IdempotencyKey, "vg-") || w.Session.UserID != "ada" || w.Session.ConversationID != "c-1" || w.Tool != "report" {
			t.Errorf("%+v", w)
		}
		s.owes("one")
		pass(2 * lookEvery)
		if s.owes("one") != "" {
			t.Error("a delivered job is reported as owed")
		}
		if again := s.start(one, "2026"); again == id {
			t.Error("a second request after the end starts no job")
		}
	})
}

// TestDeadProcess: another process takes the job of a dead one, under the same key, and gives it up after the maximum
// number of attempts.
func TestDeadProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.do = func(ctx context.Context, _ working) (registry.Result, error) {
			<-ctx.Done()
			return registry.Result{}, ctx.Err()
		}
		die := func(r *Runner) { // it writes nothing more, and its leases end
			s.keep.mu.Lock()
			s.keep.fail = store.ErrChanged
			s.keep.mu.Unlock()
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
			s.keep.mu.Lock()
			s.keep.fail = nil
			s.keep.mu.Unlock()
		}
		r := s.process("1")
		id := s.start(r, "2026")
		for i := range MaxAttempts {
			pass(3 * time.Second)
			if len(s.runs()) != i+1 || s.runs()[i].Attempt != i+1 || s.runs()[i].IdempotencyKey != s.runs()[0].IdempotencyKey {
				t.Fatalf("%+v", s.runs())
			}
			die(r)
			r = s.process(fmt.Sprint(i + 2))
		}
		pass(3 * time.Second)
		if j := s.get(id); len(s.runs()) != MaxAttempts || j.State != store.JobFailed || !strings.Contains(string(j.Result), "interrupted each time") {
			t.Errorf("%d attempts, %+v, %s", len(s.runs()), j, j.Result)
		}
		if got := s.events(); !slices.Equal(got, []string{"job_started", "job_ended PERMANENT"}) {
			t.Errorf("the audit: %q", got)
		}
	})
}

// TestZombie: a process that has lost a job without noticing cannot write to it.
func TestZombie(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		release := make(chan struct{})
		s.do = func(ctx context.Context, w working) (registry.Result, error) {
			if w.Attempt == 1 {
				<-release
				return registry.Result{Data: "of the zombie"}, nil
			}
			takes(ctx, time.Minute)
			return registry.Result{Data: "of the next"}, nil
		}
		one := s.process("one")
		id := s.start(one, "2026")
		pass(time.Second)
		s.keep.mu.Lock()
		delete(s.keep.held, id) // the lease has ended, and the holder does not know
		s.keep.mu.Unlock()
		s.process("two")
		pass(3 * time.Second)
		close(release)
		pass(2 * time.Minute)
		if j := s.get(id); j.Attempt != 2 || !strings.Contains(string(j.Result), "of the next") || s.ends() != 1 {
			t.Errorf("%+v %s, ended %d times", j, j.Result, s.ends())
		}
	})
}

// TestLeavingProcess: a process that stops gives its jobs back, and that is not a failed attempt.
func TestLeavingProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.do = func(ctx context.Context, _ working) (registry.Result, error) {
			select {
			case <-ctx.Done():
				return registry.Result{}, ctx.Err()
			case <-time.After(time.Minute):
				return registry.Result{Data: "done"}, nil
			}
		}
		one := s.process("one")
		id := s.start(one, "2026")
		pass(time.Second)
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if j := s.get(id); j.State != store.JobWaiting || j.Attempt != 0 || j.Node != "" || s.keep.leases() != 0 {
			t.Errorf("%+v, %d leases", j, s.keep.leases())
		}
		s.process("two")
		pass(2 * time.Minute)
		if j := s.get(id); j.State != store.JobDone || j.Attempt != 1 {
			t.Errorf("%+v", j)
		}
	})
}

// TestCancel: a cancelled job stops in any process, and its conversation gets no result.
func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		var cause error
		s.do = func(ctx context.Context, _ working) (registry.Result, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return registry.Result{Data: "all the same"}, nil
		}
		one := s.process("one")
		id := s.start(one, "2026")
		pass(time.Second)
		two := s.process("two")
		if _, was, err := two.Cancel(t.Context(), id, "key:1"); !was || err != nil {
			t.Fatalf("%t %v", was, err)
		}
		pass(time.Minute)
		j := s.get(id)
		owed, _ := two.OwedTo(t.Context(), "c-1")
		if j.State != store.JobCancelled || j.Result != nil || j.Payload != nil || len(owed) != 0 || !errors.Is(cause, errCancelled) || s.ends() != 1 {
			t.Errorf("%+v %s, owed %d, %v", j, j.Result, len(owed), cause)
		}
		if _, was, err := one.Cancel(t.Context(), id, ""); was || err != nil {
			t.Errorf("a second time: %t %v", was, err)
		}
		if _, _, err := one.Cancel(t.Context(), "job-nobody", ""); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("an unknown one: %v", err)
		}
		if first, err := one.Told(t.Context(), id); first || err != nil {
			t.Errorf("a cancelled one is delivered: %t %v", first, err)
		}
		if got := s.events(); !slices.Equal(got, []string{"job_started", "job_cancelled"}) {
			t.Errorf("the audit: %q", got)
		}
	})
}

// TestFailures: a retryable failure is retried after a pause, up to the maximum; another one is not; and work that takes
// too long has failed.
func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		err      error
		attempts int
		want     string
	}{
		"for now":   {registry.Errorf(registry.ErrorTransient, "Later."), MaxAttempts, "TRANSIENT"},
		"permanent": {registry.Errorf(registry.ErrorNotFound, "No such year."), 1, "NOT_FOUND"},
		"unnamed":   {errors.New("what?"), 1, "INTERNAL"},
		"too long":  {nil, 1, "did not end within 10m"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *site) {
				s.do = func(ctx context.Context, _ working) (registry.Result, error) {
					if tt.err == nil {
						<-ctx.Done()
						return registry.Result{}, ctx.Err()
					}
					return registry.Result{}, tt.err
				}
				r := s.process("one")
				id := s.start(r, "2026")
				pass(11 * time.Minute)
				if j := s.get(id); j.State != store.JobFailed || len(s.runs()) != tt.attempts || !strings.Contains(string(j.Result), tt.want) {
					t.Errorf("%d attempts, %+v %s", len(s.runs()), j, j.Result)
				}
				if owed, _ := r.OwedTo(t.Context(), "c-1"); len(owed) != 1 {
					t.Errorf("%d are owed", len(owed))
				}
			})
		})
	}
}

// TestBounds: the running jobs of one user for a tool, and those of a process, are limited; the others wait.
func TestBounds(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.do = func(ctx context.Context, _ working) (registry.Result, error) {
			takes(ctx, time.Minute)
			return registry.Result{Data: 1}, nil
		}
		r := s.process("one")
		s.start(r, "1")
		s.start(r, "2")
		if _, _, err := r.Start(t.Context(), job("3"), 2, true); !errors.Is(err, store.ErrFull) {
			t.Errorf("a third one: %v", err)
		}
		for effect, full := range map[string]bool{"deed 3": true, "deed 1": false} { // the second is running already
			if err := r.Room("ada", "report", effect, 2); errors.Is(err, store.ErrFull) != full {
				t.Errorf("room for %s: %v", effect, err)
			}
		}
		for i := range AtOnce {
			j := job(fmt.Sprint("of others ", i))
			j.User = j.Action
			if _, _, err := r.Start(t.Context(), j, 2, true); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		if len(s.runs()) != AtOnce {
			t.Errorf("%d have begun", len(s.runs()))
		}
		pass(5 * time.Minute)
		if s.ends() != AtOnce+2 {
			t.Errorf("%d have ended", s.ends())
		}
	})
}

// TestProgress: the newest progress is written, at most every two seconds, and none after the end. Each process gets each
// written one once.
func TestProgress(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		var kept registry.Progress
		s.do = func(ctx context.Context, w working) (registry.Result, error) {
			kept = w.Needs.Progress
			for i := range 100 {
				kept.Tell(fmt.Sprintf("page\n%d\u202e", i), float64(i)/100)
				takes(ctx, 97*time.Millisecond) // no report at the exact time of a write
			}
			kept.Tell(strings.Repeat("é", 300), math.NaN())
			takes(ctx, time.Minute)
			return registry.Result{Data: 1}, nil
		}
		r := s.process("one")
		id := s.start(r, "2026")
		s.process("two")
		pass(3 * time.Second)
		if p := s.get(id).Progress; p == nil || !strings.HasPrefix(p.Text, "page ") || *p.Fraction < 0.15 {
			t.Errorf("after three seconds: %+v", p)
		}
		pass(30 * time.Second)
		if p := s.get(id).Progress; p.Text != strings.Repeat("é", 199)+"…" || p.Fraction != nil {
			t.Errorf("at the end: %+v", p)
		}
		if s.keep.writes() > 8 {
			t.Errorf("%d writes in 10 s", s.keep.writes())
		}
		pass(time.Minute)
		before := s.keep.writes()
		kept.Tell("late", 1)
		pass(time.Minute)
		if s.keep.writes() != before {
			t.Error("progress was written after the end")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if one, two := s.told["one"], s.told["two"]; len(one) != 6 || !slices.Equal(one, two) || len(slices.Compact(slices.Clone(one))) != 6 {
			t.Errorf("the processes got %q and %q", one, two)
		}
	})
}

// TestStoreAway: the result of a job is written when the store is reachable again.
func TestStoreAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		away := func(err error) {
			s.keep.mu.Lock()
			defer s.keep.mu.Unlock()
			s.keep.fail = err
		}
		s.do = func(context.Context, working) (registry.Result, error) {
			away(store.ErrUnavailable)
			return registry.Result{Data: 1}, nil
		}
		r := s.process("one")
		id := s.start(r, "2026")
		pass(time.Minute)
		if j := s.get(id); j.State != store.JobRunning {
			t.Errorf("%+v", j)
		}
		away(nil)
		pass(5 * time.Second)
		if j := s.get(id); j.State != store.JobDone || len(s.runs()) != 1 {
			t.Errorf("%+v, begun %d times", j, len(s.runs()))
		}
	})
}
