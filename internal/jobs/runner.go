// Package jobs runs the long work that tool calls start, and keeps each result until its conversation has been informed.
// The rules are pure functions of a stored job and a time. A Runner applies them: it leases jobs, runs attempts and
// saves results. Each save requires the revision it last read, so a gateway that lost a job's lease can't overwrite the
// new owner's result.
package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/logging"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// Keep stores jobs; *store.Jobs implements it and documents each method. It must be safe for concurrent use.
type Keep interface {
	Create(ctx context.Context, j store.Job, anew bool) (is store.Job, fresh bool, err error)
	Save(ctx context.Context, j store.Job) (store.Job, error)
	Load(ctx context.Context, id string) (store.Job, error)
	List() (all []store.Job, changed <-chan struct{})
	Room(user string) error
	Lease(ctx context.Context, id string) (store.Held, error)
}

const (
	// AtOnce is the number of jobs a process runs concurrently.
	AtOnce = 16
	// lookEvery is the interval between searches for due and abandoned jobs.
	lookEvery = 2 * time.Second
	// progressEvery is the minimum interval between two progress writes of a job.
	progressEvery = 2 * time.Second
	// writeTime bounds one write of a job; againEvery is the pause before a retry while the store is unavailable.
	writeTime  = 5 * time.Second
	againEvery = time.Second
)

// Options configure a Runner. Keep and Tools are required.
type Options struct {
	Keep  Keep
	Tools func() *registry.Snapshot
	// Node identifies this process in the jobs it runs.
	Node string
	// Audit writes a record and must not block. Nil discards records.
	Audit func(audit.Record)
	// Ended is called for each job this process ends or cancels, and must not block. May be nil.
	Ended func(store.Job)
	// Owed is called at least every two seconds with all jobs, on any node, whose end is unreported; without results. It
	// must not block. May be nil.
	Owed func([]store.Job)
	// Progressed is called when a running job, on any node, has reported new progress; without its payload. It must not
	// block. May be nil.
	Progressed func(store.Job)
	// Logger may be nil.
	Logger *slog.Logger
}

// Runner runs jobs. Its methods may be used concurrently.
type Runner struct {
	// Immutable after New.
	opts   Options
	seldom *logging.Throttle
	ctx    func() context.Context // the parent of every attempt
	stop   context.CancelCauseFunc
	poke   chan struct{} // requests a search for jobs; capacity 1, never closed
	work   sync.WaitGroup

	starting sync.Mutex // makes the check of Room and the creation of a job atomic

	mu      sync.Mutex // guards the following fields
	closed  bool
	running map[string]*attempt // by job ID
}

// attempt is a job that this process runs or is about to lease.
type attempt struct {
	number int // 0 until the job is leased
	cancel context.CancelCauseFunc
}

// The causes for cancelling an attempt.
var (
	errLeaving   = errors.New("the gateway is shutting down")
	errCancelled = errors.New("the job was cancelled")
	errLost      = errors.New("another gateway may have the job")
)

// New starts running jobs. The caller must call Close.
func New(o Options) *Runner {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancelCause(context.Background())
	r := &Runner{
		opts: o, seldom: logging.NewThrottle(o.Logger), ctx: func() context.Context { return ctx }, stop: stop,
		poke: make(chan struct{}, 1), running: map[string]*attempt{},
	}
	r.work.Go(func() { r.watch(ctx) })
	return r
}

// Close stops all attempts and releases their jobs for another process or the next start. It returns when that is done,
// or an error when ctx ends. A nil Runner does nothing.
func (r *Runner) Close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop(errLeaving)
	done := make(chan struct{}) // closed when no attempt runs
	go func() {
		r.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("jobs: some could not be released in time; another attempt starts when their leases expire")
	}
}

// Room returns an error wrapping store.ErrFull if Start would refuse a new job for this user, tool and action.
func (r *Runner) Room(user, tool, action string, atOnce int) error {
	all, _ := r.opts.Keep.List()
	open, known := 0, false
	for _, is := range all {
		known = known || is.Action == action
		if is.User == user && is.Tool == tool && !is.State.Over() && is.Action != action {
			open++
		}
	}
	switch {
	case open >= atOnce:
		return store.ErrFull
	case known:
		return nil // reuses the existing job
	}
	return r.opts.Keep.Room(user)
}

// Start creates a job and returns fresh true. If the same action already has a job, Start returns that one, unless it
// has ended and anew is set. Start sets ID, Key, State and CreatedAt. The errors wrap store.ErrFull (too many jobs),
// store.ErrTooBig or store.ErrUnavailable.
func (r *Runner) Start(ctx context.Context, j store.Job, atOnce int, anew bool) (is store.Job, fresh bool, err error) {
	r.starting.Lock()
	defer r.starting.Unlock()
	if err := r.Room(j.User, j.Tool, j.Action, atOnce); err != nil {
		return store.Job{}, false, err
	}
	j.ID, j.State, j.CreatedAt = "job-"+strings.ToLower(rand.Text())[:20], store.JobWaiting, time.Now().UTC()
	j.Key = keyOf(j)
	if is, fresh, err = r.opts.Keep.Create(ctx, j, anew); err != nil {
		return store.Job{}, false, err
	}
	if fresh {
		r.record(audit.EventJobStarted, is, "")
	}
	r.look()
	return is, fresh, nil
}

func (r *Runner) look() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

func (r *Runner) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	strangers := true // whether to try jobs that another process seems to run
	reported := map[string]time.Time{}
	for {
		all, changed := r.opts.Keep.List()
		r.heed(all)
		r.fill(ctx, all, strangers)
		reported = r.progressed(all, reported)
		r.owed(all)
		strangers = false
		select {
		case <-changed:
		case <-r.poke:
		case <-tick.C:
			strangers = true
		case <-ctx.Done():
			return
		}
	}
}

// progressed reports new progress of running jobs. reported holds the time of each job's last report; the updated map is
// returned.
func (r *Runner) progressed(all []store.Job, reported map[string]time.Time) map[string]time.Time {
	next := map[string]time.Time{}
	for _, j := range all {
		if j.State != store.JobRunning || j.Progress == nil {
			continue
		}
		next[j.ID] = j.Progress.At
		if r.opts.Progressed != nil && !reported[j.ID].Equal(j.Progress.At) {
			r.opts.Progressed(j)
		}
	}
	return next
}

func (r *Runner) owed(all []store.Job) {
	if owed := slices.DeleteFunc(all, func(j store.Job) bool { return !j.Owed() }); len(owed) > 0 && r.opts.Owed != nil {
		r.opts.Owed(owed)
	}
}

// heed stops attempts at jobs that were cancelled elsewhere or leased by another process.
func (r *Runner) heed(all []store.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range all {
		a := r.running[j.ID]
		switch {
		case a == nil || a.number == 0:
		case j.State == store.JobCancelled:
			a.cancel(errCancelled)
		case j.Attempt > a.number:
			a.cancel(errLost)
		}
	}
}

// fill starts attempts at due jobs, oldest first, up to AtOnce.
func (r *Runner) fill(ctx context.Context, all []store.Job, strangers bool) {
	now := time.Now()
	for _, j := range all {
		if !due(j, now) || j.State == store.JobRunning && !strangers {
			continue
		}
		if !r.begin(ctx, j.ID) {
			return
		}
	}
}

// begin starts an attempt unless one is running. It reports whether there was room.
func (r *Runner) begin(ctx context.Context, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[id] != nil {
		return true
	}
	if r.closed || len(r.running) >= AtOnce {
		return false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{cancel: cancel}
	r.running[id] = a
	r.work.Go(func() {
		had := r.attempt(ctx, a, id)
		cancel(nil)
		r.mu.Lock()
		delete(r.running, id)
		r.mu.Unlock()
		if had {
			r.look() // a slot is free
		}
	})
	return true
}

// attempt leases a job and runs one attempt. It reports whether it got the lease.
func (r *Runner) attempt(ctx context.Context, a *attempt, id string) bool {
	held, err := r.opts.Keep.Lease(ctx, id)
	if err != nil {
		r.untaken(ctx, id, err)
		return false
	}
	defer held.Release()
	held.WhenLost(func() { a.cancel(errLost) })
	j, err := r.opts.Keep.Load(ctx, id)
	if err != nil || !due(j, time.Now()) {
		return false
	}
	before := j.Attempt
	if j, err = r.opts.Keep.Save(ctx, take(j, r.opts.Node, time.Now())); err != nil {
		r.untaken(ctx, id, err)
		return false
	}
	if j.State.Over() {
		r.over(j)
		return true
	}
	if before > 0 {
		r.opts.Logger.Warn("job retried", "job", id, "tool", j.Tool, "attempt", j.Attempt)
	}
	r.mu.Lock()
	a.number = j.Attempt
	r.mu.Unlock()
	r.do(ctx, j)
	return true
}

// untaken logs why a job couldn't be leased, unless another process was faster, and pauses.
func (r *Runner) untaken(ctx context.Context, id string, err error) {
	if errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrChanged) || ctx.Err() != nil {
		return
	}
	r.seldom.Info("cannot lease job", "store", "job", id, "error", err)
	r.pause(ctx)
}

func (r *Runner) pause(ctx context.Context) {
	select {
	case <-time.After(againEvery):
	case <-ctx.Done():
	}
}

func (r *Runner) do(ctx context.Context, j store.Job) {
	b := &callContext{r: r, job: j, news: make(chan store.JobProgress, 1)}
	done := make(chan registry.Envelope, 1) // sent by the working goroutine
	go func() { done <- r.opts.Tools().Work(ctx, run(j), b) }()
	var pause <-chan time.Time // set while progress may not be written
	news := b.news
	for {
		select {
		case p := <-news:
			news, pause = nil, time.After(progressEvery)
			next := j
			next.Progress = &p
			if saved, err := r.opts.Keep.Save(ctx, next); err == nil {
				j = saved
			} else if ctx.Err() == nil && !errors.Is(err, store.ErrChanged) {
				r.seldom.Info("cannot save job progress", "progress", "job", j.ID, "error", err)
			}
		case <-pause:
			news, pause = b.news, nil
		case env := <-done:
			b.end()
			r.ended(ctx, j, env)
			return
		}
	}
}

func (r *Runner) ended(ctx context.Context, j store.Job, env registry.Envelope) {
	next := settle(j, env, time.Now())
	switch cause := context.Cause(ctx); {
	case env.OK:
	case errors.Is(cause, errCancelled), errors.Is(cause, errLost):
		return
	case errors.Is(cause, errLeaving):
		next = giveBack(j)
	}
	next.Revision = j.Revision
	for {
		err := r.write(ctx, next)
		if !errors.Is(err, store.ErrUnavailable) {
			if err != nil && !errors.Is(err, store.ErrChanged) {
				r.opts.Logger.Error("cannot save job result", "job", j.ID, "tool", j.Tool, "error", err)
			}
			return
		}
		r.seldom.Info("cannot save job result, retrying", "end", "job", j.ID, "error", err)
		if ctx.Err() != nil {
			return // another attempt follows
		}
		r.pause(ctx)
	}
}

// write saves a job once, even during shutdown.
func (r *Runner) write(ctx context.Context, next store.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	saved, err := r.opts.Keep.Save(ctx, next)
	if err == nil && saved.State.Over() {
		r.over(saved)
	}
	return err
}

func (r *Runner) over(j store.Job) {
	r.record(audit.EventJobEnded, j, failure(j))
	r.opts.Logger.Info("job ended", "job", j.ID, "tool", j.Tool, "state", string(j.State), "attempts", j.Attempt,
		"conversation_id", j.Conversation, "duration_ms", j.EndedAt.Sub(j.CreatedAt).Milliseconds())
	if r.opts.Ended != nil {
		r.opts.Ended(j)
	}
}

func (r *Runner) record(event audit.Event, j store.Job, failed registry.ErrorType) {
	if r.opts.Audit == nil {
		return
	}
	line := recordOf(event, j)
	line.OK, line.ErrorType = failed == "", failed
	if !j.EndedAt.IsZero() {
		line.DurationMS = j.EndedAt.Sub(j.CreatedAt).Milliseconds()
	}
	r.opts.Audit(line)
}

func recordOf(event audit.Event, j store.Job) audit.Record {
	return audit.Record{
		Event: event, Time: audit.At(time.Now()), OK: true, ToolID: j.Tool, Mode: spec.Mode(j.Mode),
		SessionID: j.Session, UserID: j.User, ConversationID: j.Conversation, Agent: j.Agent, TurnID: j.Turn,
		ToolCall: audit.ToolCall{CallID: j.Call, IdempotencyKey: j.Key}, Job: j.ID,
	}
}

// List returns the matching jobs, oldest first, without payloads and results. An empty name matches all.
func (r *Runner) List(user, conversation string) []store.Job {
	all, _ := r.opts.Keep.List()
	var list []store.Job
	for _, j := range all {
		if (user == "" || j.User == user) && (conversation == "" || j.Conversation == conversation) {
			list = append(list, j)
		}
	}
	return list
}

// Job returns a job with its result. The error is store.ErrUnknown or wraps store.ErrUnavailable.
func (r *Runner) Job(ctx context.Context, id string) (store.Job, error) {
	return r.opts.Keep.Load(ctx, id)
}

// OwedTo returns the ended jobs not yet reported to a conversation, in the order they ended. The error wraps
// store.ErrUnavailable.
func (r *Runner) OwedTo(ctx context.Context, conversation string) ([]store.Job, error) {
	var owed []store.Job
	for _, j := range r.List("", conversation) {
		if !j.Owed() {
			continue
		}
		whole, err := r.opts.Keep.Load(ctx, j.ID)
		switch {
		case errors.Is(err, store.ErrUnknown):
		case err != nil:
			return nil, err
		case whole.Owed():
			owed = append(owed, whole)
		}
	}
	return owed, nil
}

// change applies a rule to a job, and retries when another writer changed it in between. ok is the rule's.
func (r *Runner) change(
	ctx context.Context, id string, rule func(store.Job, time.Time) (store.Job, bool),
) (j store.Job, ok bool, err error) {
	for {
		if j, err = r.opts.Keep.Load(ctx, id); err != nil {
			return j, false, err
		}
		next, ok := rule(j, time.Now())
		if !ok {
			return j, false, nil
		}
		if j, err = r.opts.Keep.Save(ctx, next); !errors.Is(err, store.ErrChanged) {
			return j, err == nil, err
		}
		if ctx.Err() != nil {
			return j, false, ctx.Err()
		}
	}
}

// Told records that a job's end was reported to its conversation. If several callers record it, only one gets true. The
// error is store.ErrUnknown or wraps store.ErrUnavailable.
func (r *Runner) Told(ctx context.Context, id string) (first bool, err error) {
	j, ok, err := r.change(ctx, id, reported)
	if ok {
		r.record(audit.EventJobTold, j, failure(j))
	}
	return ok, err
}

// Cancel stops an unfinished job wherever it runs; its conversation gets no report. was is false if the job had already
// ended. by names the requester, for the log. The error is store.ErrUnknown or wraps store.ErrUnavailable.
func (r *Runner) Cancel(ctx context.Context, id, by string) (j store.Job, was bool, err error) {
	j, was, err = r.change(ctx, id, cancel)
	if was {
		r.record(audit.EventJobCancelled, j, "")
		r.opts.Logger.Info("job cancelled", "job", id, "tool", j.Tool, "by", by)
		r.look()
		if r.opts.Ended != nil {
			r.opts.Ended(j)
		}
	}
	return j, was, err
}

// callContext is the registry.CallCapabilities of one attempt. Its methods may be called concurrently, and have no effect
// after the attempt has ended.
type callContext struct {
	// Immutable.
	r   *Runner
	job store.Job
	// news holds the newest progress report; never closed.
	news chan store.JobProgress

	mu    sync.Mutex // guards the following fields
	over  bool
	noted int
}

func (b *callContext) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

func (b *callContext) Tell(text string, fraction float64) {
	p := store.JobProgress{Text: registry.ProgressText(text), At: time.Now().UTC()}
	if fraction >= 0 { // and not NaN
		p.Fraction = new(min(fraction, 1))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	select {
	case <-b.news:
	default:
	}
	b.news <- p // cannot block: only this method sends, and it holds mu
}

// Timeout does nothing: no client waits for a job.
func (*callContext) Timeout(time.Time, time.Duration, string) {}

// Send validates the message and drops it: no client waits for a job.
func (*callContext) Send(name string, data any) error {
	_, err := registry.Aside(name, data)
	return err
}

func (b *callContext) Note(event string, data any) error {
	encoded, err := registry.Aside(event, data)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over || b.r.opts.Audit == nil:
		return nil
	case b.noted == registry.MaxAsides:
		return registry.TooManyAsides("notes")
	}
	b.noted++
	line := recordOf(audit.EventNote, b.job)
	line.ToolNote = audit.ToolNote{Note: event, NoteData: encoded}
	b.r.opts.Audit(line)
	return nil
}
