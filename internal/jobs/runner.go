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

// Keep keeps jobs; *store.Jobs does. Its methods may be used concurrently.
type Keep interface {
	Create(ctx context.Context, j store.Job, anew bool) (is store.Job, fresh bool, err error)
	Save(ctx context.Context, j store.Job) (store.Job, error)
	Load(ctx context.Context, id string) (store.Job, error)
	List() (all []store.Job, changed <-chan struct{})
	// Room returns an error that wraps store.ErrFull if no new job of that user may be kept.
	Room(user string) error
	// Lease reserves a job for the caller; store.ErrBusy if somebody else has it.
	Lease(ctx context.Context, id string) (store.Held, error)
}

const (
	// AtOnce is how many jobs run at once in one process.
	AtOnce = 16
	// lookEvery is how often a Runner looks for jobs that nobody has, and for those whose time has come.
	lookEvery = 2 * time.Second
	// progressEvery is the shortest time between two writes of a job's progress.
	progressEvery = 2 * time.Second
	// writeTime bounds one write of a job, and againEvery is the pause before it is tried again while the
	// store is away.
	writeTime  = 5 * time.Second
	againEvery = time.Second
)

// Options configure a Runner. Keep and Tools are required.
type Options struct {
	Keep Keep
	// Tools returns the current tools.
	Tools func() *registry.Snapshot
	// Node names this process in the jobs that it runs.
	Node string
	// Audit writes a record, and must not wait. Nil discards it.
	Audit func(audit.Record)
	// Ended is told of each job that this process has ended or cancelled, and must not wait. Nil means nobody.
	Ended func(store.Job)
	// Owed is told, again and again, of all jobs that have ended, on any node, and of which no conversation was
	// told; without results. It must not wait. Nil means nobody.
	Owed func([]store.Job)
	// Progressed is told of each job that runs, on any node, whenever it has said how far it is; without a payload.
	// It must not wait. Nil means nobody.
	Progressed func(store.Job)
	// Logger is told what cannot be written. Nil means no logging.
	Logger *slog.Logger
}

// Runner runs jobs. Its methods may be used concurrently.
type Runner struct {
	// Fixed after New.
	opts   Options
	seldom *logging.Throttle
	ctx    func() context.Context // of every attempt
	stop   context.CancelCauseFunc
	poke   chan struct{} // holds one request to look for jobs; never closed
	work   sync.WaitGroup

	starting sync.Mutex // so that jobs of a user that begin at once are counted

	mu      sync.Mutex // guards the following fields
	closed  bool
	running map[string]*attempt // by the id of the job
}

// attempt is a job that this process has taken, or is about to.
type attempt struct {
	number int // 0 before it was taken
	cancel context.CancelCauseFunc
}

// The causes for which an attempt is stopped.
var (
	errLeaving   = errors.New("the gateway is shutting down")
	errCancelled = errors.New("the job was cancelled")
	errLost      = errors.New("another gateway may have the job")
)

// New begins to run jobs. Close must be called.
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

// Close stops all attempts and gives their jobs back, so that another process or the next start takes them.
// It returns when that is done, or with an error when ctx is. A nil Runner has nothing to close.
func (r *Runner) Close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop(errLeaving)
	done := make(chan struct{}) // closed when nothing runs
	go func() {
		r.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("jobs: some could not be given back in time; they are taken again when their leases end")
	}
}

// Room returns an error that wraps store.ErrFull if Start would refuse a new job for that user, tool and action
// because too many are under way or kept.
func (r *Runner) Room(user, tool, deed string, atOnce int) error {
	all, _ := r.opts.Keep.List()
	open, known := 0, false
	for _, is := range all {
		known = known || is.Deed == deed
		if is.User == user && is.Tool == tool && !is.State.Over() && is.Deed != deed {
			open++
		}
	}
	switch {
	case open >= atOnce:
		return store.ErrFull
	case known:
		return nil // it takes no new place
	}
	return r.opts.Keep.Room(user)
}

// Start begins a job, and then fresh is true. It returns the existing job for the same action if that is under way
// or, unless anew, over. Start sets the job's ID, Key, State and CreatedAt. The errors wrap store.ErrFull if too many
// jobs are under way or kept, store.ErrTooBig or store.ErrUnavailable.
func (r *Runner) Start(ctx context.Context, j store.Job, atOnce int, anew bool) (is store.Job, fresh bool, err error) {
	r.starting.Lock()
	defer r.starting.Unlock()
	if err := r.Room(j.User, j.Tool, j.Deed, atOnce); err != nil {
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

// look has the Runner look for jobs now.
func (r *Runner) look() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// watch takes jobs, and stops what was cancelled, until ctx ends.
func (r *Runner) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	strangers := true // also those that another process seems to run
	told := map[string]time.Time{}
	for {
		all, changed := r.opts.Keep.List()
		r.heed(all)
		r.fill(ctx, all, strangers)
		told = r.progressed(all, told)
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

// progressed tells how far the running jobs are. told has the time of the last report of each that was told; the next
// such map is returned.
func (r *Runner) progressed(all []store.Job, told map[string]time.Time) map[string]time.Time {
	next := map[string]time.Time{}
	for _, j := range all {
		if j.State != store.JobRunning || j.Progress == nil {
			continue
		}
		next[j.ID] = j.Progress.At
		if r.opts.Progressed != nil && !told[j.ID].Equal(j.Progress.At) {
			r.opts.Progressed(j)
		}
	}
	return next
}

// owed tells of the jobs that have ended and were told to nobody.
func (r *Runner) owed(all []store.Job) {
	if owed := slices.DeleteFunc(all, func(j store.Job) bool { return !j.Owed() }); len(owed) > 0 && r.opts.Owed != nil {
		r.opts.Owed(owed)
	}
}

// heed stops attempts at jobs that were cancelled, or taken by another process, elsewhere.
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

// fill begins attempts at jobs that are due, the oldest first, as long as there is room.
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

// begin begins an attempt at a job, unless this process has it already. It reports whether there was room.
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
			r.look() // there is room for another one
		}
	})
	return true
}

// attempt takes a job, if nobody else has it, and makes one attempt at it. It reports whether it had the job.
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
		r.opts.Logger.Warn("a job is begun again", "job", id, "tool", j.Tool, "attempt", j.Attempt)
	}
	r.mu.Lock()
	a.number = j.Attempt
	r.mu.Unlock()
	r.do(ctx, j)
	return true
}

// untaken tells of a job that cannot be taken, unless somebody else was faster, and waits a moment.
func (r *Runner) untaken(ctx context.Context, id string, err error) {
	if errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrChanged) || ctx.Err() != nil {
		return
	}
	r.seldom.Info("a job cannot be taken", "store", "job", id, "error", err)
	r.pause(ctx)
}

// pause keeps a job that cannot be taken from being tried again at once.
func (r *Runner) pause(ctx context.Context) {
	select {
	case <-time.After(againEvery):
	case <-ctx.Done():
	}
}

// do runs the work of a job that was taken, and writes what became of it.
func (r *Runner) do(ctx context.Context, j store.Job) {
	b := &beside{r: r, job: j, news: make(chan store.JobProgress, 1)}
	done := make(chan registry.Envelope, 1) // from the goroutine of the work to this one
	go func() { done <- r.opts.Tools().Work(ctx, run(j), b) }()
	var pause <-chan time.Time // until progress may be written again; nil if it may
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
				r.seldom.Info("the progress of a job cannot be written", "progress", "job", j.ID, "error", err)
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

// ended writes what came of an attempt, until it is written or somebody else has the job.
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
				r.opts.Logger.Error("what became of a job cannot be written", "job", j.ID, "tool", j.Tool, "error", err)
			}
			return
		}
		r.seldom.Info("what became of a job cannot be written, and is tried again", "end", "job", j.ID, "error", err)
		if ctx.Err() != nil {
			return // this process ends, or has lost the job: it is done again
		}
		r.pause(ctx)
	}
}

// write writes a job once, also while this process ends.
func (r *Runner) write(ctx context.Context, next store.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	saved, err := r.opts.Keep.Save(ctx, next)
	if err == nil && saved.State.Over() {
		r.over(saved)
	}
	return err
}

// over tells of a job that has ended.
func (r *Runner) over(j store.Job) {
	r.record(audit.EventJobEnded, j, failure(j))
	r.opts.Logger.Info("job ended", "job", j.ID, "tool", j.Tool, "state", string(j.State), "attempts", j.Attempt,
		"conversation_id", j.Conversation, "duration_ms", j.EndedAt.Sub(j.CreatedAt).Milliseconds())
	if r.opts.Ended != nil {
		r.opts.Ended(j)
	}
}

// record writes a line of the audit about a job.
func (r *Runner) record(event audit.Event, j store.Job, failed registry.ErrorType) {
	if r.opts.Audit == nil {
		return
	}
	line := audit.Record{
		Event: event, Time: time.Now().UTC().Truncate(time.Millisecond), ToolID: j.Tool, Mode: spec.Mode(j.Mode), SessionID: j.Session,
		UserID: j.User, ConversationID: j.Conversation, Agent: j.Agent, TurnID: j.Turn, CallID: j.Call, IdempotencyKey: j.Key,
		Job: j.ID, OK: failed == "", ErrorType: failed,
	}
	if !j.EndedAt.IsZero() {
		line.DurationMS = j.EndedAt.Sub(j.CreatedAt).Milliseconds()
	}
	r.opts.Audit(line)
}
