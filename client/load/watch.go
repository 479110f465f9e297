package load

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"voicegw/client/load/report"
	"voicegw/internal/process"
)

// watch observes the gateway from outside the conversations, on the goroutine of Run.
type watch struct {
	// Fixed after newWatch.
	pid    int
	debug  string
	health string // the address of /healthz; empty if unknown
	client *http.Client

	// soak waits for resources that a gateway closes late.
	soak bool
	// settle is the wait before measuring a gateway without sessions.
	settle time.Duration
	// progress, if set, is called every second of a wait.
	progress func(Status)
	// descriptors counts the process's descriptors; nil if they can't be read.
	descriptors func() (int, error)
	// fewest is the lowest count since its last reset.
	fewest int

	first  process.Usage // at the run's start
	latest process.Usage
	at     time.Time // of latest
	start  report.State
	ended  report.State
	most   report.Process
	// cpu and rss are those of the latest interval.
	cpu, rss float64
}

const askTime = 10 * time.Second

func newWatch(ctx context.Context, o Options, client *http.Client) (*watch, error) {
	w := &watch{pid: o.PID, debug: o.Debug, client: client, soak: o.Plan.Mode == Soak, settle: settleTime, progress: o.Progress}
	if w.soak {
		w.settle = bufferTime
	}
	if base, err := BaseURL(o.URL); err == nil && o.Dial == nil {
		w.health = base + "/healthz"
	}
	if w.debug != "" {
		if w.pid == 0 {
			return nil, fmt.Errorf("%w: --debug needs --pid", ErrOptions)
		}
		if _, err := w.vars(ctx, false); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	if w.pid != 0 {
		if _, err := process.Read(w.pid); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
		w.descriptors = func() (int, error) {
			u, err := process.Read(w.pid)
			return u.FDs, err
		}
	}
	return w, nil
}

func (w *watch) vars(ctx context.Context, collect bool) (process.Vars, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return process.ReadVars(ctx, w.client, w.debug, collect)
}

func (w *watch) begin(ctx context.Context) {
	w.fewest = 0
	w.start = w.state(ctx)
	w.at = time.Now()
	if w.pid == 0 {
		return
	}
	if u, err := process.Read(w.pid); err == nil {
		w.first, w.latest = u, u
	}
}

// state is the process's state at rest; zero if unreadable. It has the lowest descriptor count since the last call,
// because files open briefly, as when the store syncs; a soak takes the lowest memory for the same reason.
func (w *watch) state(ctx context.Context) report.State {
	if w.pid == 0 {
		return report.State{}
	}
	var s report.State
	w.rest(ctx, func() { w.weigh(ctx, &s) })
	w.weigh(ctx, &s)
	s.FDs = w.fewest
	return s
}

func (w *watch) weigh(ctx context.Context, s *report.State) {
	if w.debug != "" {
		if v, err := w.vars(ctx, true); err == nil {
			s.Goroutines, s.HeapMB = int(v.Goroutines), least(s.HeapMB, inMB(v.HeapAlloc))
		}
	}
	if u, err := process.Read(w.pid); err == nil {
		s.RSSMB, s.Threads = least(s.RSSMB, inMB(u.RSS)), u.Threads
	}
}

// least returns the smaller figure; zero means none yet.
func least(before, now float64) float64 { return min(cmp.Or(before, now), now) }

// The time for a gateway to come to rest after the last session.
const (
	restTime = 30 * time.Second
	// settleTime is for connections to the provider, which close after the last session.
	settleTime = 2 * time.Second
	// bufferTime is for the store's buffers: up to 4 MiB for each bucket until ten seconds after its last write
	// (nats-server 2.15, server/filestore.go, defaultCacheBufferExpiration), and the gateway writes usage for some
	// seconds after the last session. A soak samples memory every weighEvery during this time, at both ends.
	bufferTime = time.Minute
	weighEvery = 5 * time.Second
)

// rest waits until the gateway has no sessions and has released its late resources. In a soak, look is called at
// intervals.
func (w *watch) rest(ctx context.Context, look func()) {
	const what = "until the gateway is at rest"
	w.await(ctx, what, restTime, func() bool { return w.sessions(ctx) == 0 })
	next := time.Now().Add(weighEvery)
	w.await(ctx, what, w.settle, func() bool {
		if w.soak && !time.Now().Before(next) {
			look()
			next = time.Now().Add(weighEvery)
		}
		return false
	})
}

func (w *watch) await(ctx context.Context, what string, atMost time.Duration, done func() bool) {
	wait(ctx, w.progress, what, atMost, func() bool {
		w.count()
		return done()
	})
}

func (w *watch) awaitClosed(ctx context.Context) {
	w.await(ctx, "until the gateway's store closes its files", closeTime, func() bool { return w.fewest <= w.start.FDs })
}

func (w *watch) count() {
	if w.descriptors == nil {
		return
	}
	if n, err := w.descriptors(); err == nil && (w.fewest == 0 || n < w.fewest) {
		w.fewest = n
	}
}

// sessions returns the number of the gateway's sessions; 0 if it does not tell.
func (w *watch) sessions(ctx context.Context) int64 {
	var health struct{ Sessions int64 }
	if w.health == "" || ask(ctx, w.client, w.health, &health) != nil {
		return 0
	}
	return max(health.Sessions, 0)
}

// look returns the process's CPU since the last look, in percent of one core, and its MB; zero if unreadable.
func (w *watch) look(now time.Time) (cpu, rss float64) {
	if w.pid == 0 {
		return 0, 0
	}
	u, err := process.Read(w.pid)
	if err != nil {
		return 0, 0
	}
	cpu = percent(u.CPU-w.latest.CPU, now.Sub(w.at))
	w.latest, w.at = u, now
	w.most.CPUMax = max(w.most.CPUMax, cpu)
	w.most.RSSMB = max(w.most.RSSMB, inMB(u.RSS))
	w.most.Threads, w.most.FDs = max(w.most.Threads, u.Threads), max(w.most.FDs, u.FDs)
	return cpu, inMB(u.RSS)
}

const (
	// closeTime is for the store's files: every two minutes it closes those without writes for half a minute
	// (nats-server 2.15, server/filestore.go, syncBlocks).
	closeTime = 3 * time.Minute
	leaveTime = 5 * time.Second
)

// end measures the gateway without sessions, and returns how many it still has.
func (w *watch) end(ctx context.Context) (left int64) {
	if w.pid != 0 {
		w.fewest = 0
		if w.soak {
			w.awaitClosed(ctx)
		}
		w.ended = w.state(ctx)
	}
	wait(ctx, w.progress, "until the gateway has no sessions", leaveTime, func() bool {
		left = w.sessions(ctx)
		return left == 0
	})
	return left
}

func (w *watch) resources(r *report.Report, took time.Duration) *report.Resources {
	if w.pid == 0 {
		return nil
	}
	used := w.latest.CPU - w.first.CPU
	res := &report.Resources{PID: w.pid, Process: w.most, Start: w.start, End: w.ended}
	res.CPU = percent(used, took)
	sessions, most := 0.0, 0.0
	for _, p := range r.Series {
		sessions += float64(p.Sessions)
		most = max(most, float64(p.Sessions))
	}
	if sessions > 0 {
		res.CPUPerSession = round(res.CPU / (sessions / float64(len(r.Series))))
		res.RSSPerSessionKB = round(max(res.RSSMB-res.Start.RSSMB, 0) * 1024 / most)
	}
	if frames := r.Counters["frames_up"] + r.Counters["frames_down"]; frames > 0 {
		res.CPUPerFrameUS = round(float64(used.Microseconds()) / float64(frames))
	}
	return res
}

func generator(first process.Usage, took time.Duration) report.Process {
	p := report.Process{Goroutines: runtime.NumGoroutine()}
	if u, err := process.Read(0); err == nil {
		p.CPU, p.RSSMB, p.Threads, p.FDs = percent(u.CPU-first.CPU, took), inMB(u.RSS), u.Threads, u.FDs
	}
	return p
}

func percent(used, of time.Duration) float64 {
	if of <= 0 {
		return 0
	}
	return round(100 * float64(used) / float64(of))
}

func inMB(bytes int64) float64 { return round(float64(bytes) / (1 << 20)) }

func round(v float64) float64 { return float64(int64(v*100+0.5)) / 100 }

const lookEvery = 250 * time.Millisecond

// wait polls until done, for at most atMost or until ctx ends; then it returns false. It reports progress every
// second.
func wait(ctx context.Context, progress func(Status), what string, atMost time.Duration, done func() bool) bool {
	began := time.Now()
	reported := began
	for !done() {
		now := time.Now()
		since := now.Sub(began)
		if progress != nil && now.Sub(reported) >= progressEvery {
			reported = now
			progress(Status{Waiting: what, Elapsed: since, Total: atMost})
		}
		if since >= atMost || !sleepUntil(ctx, now.Add(min(lookEvery, atMost-since))) {
			return false
		}
	}
	return true
}

// sleepUntil waits until a time; false if ctx ends first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	left := time.Until(at)
	if left <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
