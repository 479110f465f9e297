package load

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"voicegw/client/load/caller"
	"voicegw/client/load/report"
	"voicegw/internal/process"
)

// watch looks at the gateway from outside of the conversations: its process, its debug
// address, and how many sessions it believes to have. Its methods are called from the
// goroutine that called Run.
type watch struct {
	// Fixed after newWatch.
	pid    int
	debug  string
	health string // the address of /healthz; empty if it is not known
	client *http.Client

	// soak says that what a gateway closes late is waited for.
	soak bool
	// settle is how long a gateway without sessions is left alone before it is looked at.
	settle time.Duration
	// tell, if set, is called every second of a wait.
	tell func(Status)
	// descriptors counts those of the process; nil if they cannot be read.
	descriptors func() (int, error)
	// fewest is the least that it said since it was last set to zero.
	fewest int

	first  process.Usage // when the run began
	latest process.Usage
	at     time.Time // of latest
	start  report.State
	ended  report.State
	most   report.Process
	// cpu and rss are those of the latest interval, as the series has them.
	cpu, rss float64
}

// askTime bounds a question to the gateway.
const askTime = 10 * time.Second

func newWatch(ctx context.Context, o Options, client *http.Client) (*watch, error) {
	w := &watch{pid: o.PID, debug: o.Debug, client: client, soak: o.Plan.Mode == Soak, settle: settleTime, tell: o.Progress}
	if w.soak {
		w.settle = bufferTime
	}
	if base, err := caller.BaseURL(o.URL); err == nil && o.Dial == nil {
		w.health = base + "/healthz"
	}
	if w.debug != "" {
		if w.pid == 0 {
			return nil, fmt.Errorf("%w: the debug address says nothing of memory; give --pid with it", ErrOptions)
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

// begin notes how the process stands before the first call, which takes the time that the
// gateway needs to come to rest.
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

// state is the process's state at rest; zero if it cannot be read. Descriptors are the
// fewest of all looks since the last call: what is open for a moment, as a file that the
// store opens to sync it or this program's own question, is not held. Of memory a soak tells the
// least of its looks, for the same reason.
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

// weigh notes what the process holds now, as far as it can be read, and the least memory that it held.
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

// least returns the smaller of two figures; zero stands for no figure yet.
func least(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return min(before, now)
}

// How long a gateway may take to come to rest after the last session.
const (
	restTime = 30 * time.Second
	// settleTime is for what is closed after the last session: connections to the provider.
	settleTime = 2 * time.Second
	// bufferTime is for what the gateway's store wrote last: it keeps a buffer of up to 4 MiB
	// for each of its buckets until nothing was written to it for ten seconds (nats-server
	// 2.15, server/filestore.go, defaultCacheBufferExpiration), and the gateway writes what was
	// used for some seconds after the last session. A soak, which compares what is left with what
	// was there, looks at memory every weighEvery meanwhile, at both ends.
	bufferTime = time.Minute
	weighEvery = 5 * time.Second
)

// rest waits until the gateway has no session any more, and what it closes and lets go of
// late has had its time. In a soak look is called now and then meanwhile.
func (w *watch) rest(ctx context.Context, look func()) {
	const what = "until the gateway is at rest"
	w.await(ctx, what, restTime, func() bool {
		n, ok := w.sessions(ctx)
		return !ok || n == 0
	})
	next := time.Now().Add(weighEvery)
	w.await(ctx, what, w.settle, func() bool {
		if w.soak && !time.Now().Before(next) {
			look()
			next = time.Now().Add(weighEvery)
		}
		return false
	})
}

// await waits as wait does, and counts descriptors meanwhile.
func (w *watch) await(ctx context.Context, what string, atMost time.Duration, done func() bool) {
	wait(ctx, w.tell, what, atMost, func() bool {
		w.count()
		return done()
	})
}

// closeTime is for files of a gateway's store: every two minutes it closes those that it has
// not written to for half a minute (nats-server 2.15, server/filestore.go, syncBlocks).
const closeTime = 3 * time.Minute

// awaitClosed waits until there are no more descriptors than there were, or for closeTime.
func (w *watch) awaitClosed(ctx context.Context) {
	w.await(ctx, "until the gateway's store has closed its files", closeTime, func() bool {
		return w.fewest <= w.start.FDs
	})
}

// count looks how many descriptors there are.
func (w *watch) count() {
	if w.descriptors == nil {
		return
	}
	if n, err := w.descriptors(); err == nil && (w.fewest == 0 || n < w.fewest) {
		w.fewest = n
	}
}

// sessions is how many the gateway believes to have; false if it does not say.
func (w *watch) sessions(ctx context.Context) (int64, bool) {
	if w.health == "" {
		return 0, false
	}
	health := struct{ Sessions int64 }{-1}
	err := ask(ctx, w.client, w.health, &health)
	return health.Sessions, err == nil && health.Sessions >= 0
}

// look notes what the process took since the last time, in percent of one core, and holds
// now, in MB; zero if it cannot be read.
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

// end notes how the process stands after the last call, and returns how many sessions it
// still has.
func (w *watch) end(ctx context.Context) int64 {
	if w.pid != 0 {
		w.fewest = 0
		if w.soak {
			w.awaitClosed(ctx)
		}
		w.ended = w.state(ctx)
	}
	return w.leftOver(ctx)
}

// leaveTime is how long a gateway may take to end sessions whose callers have hung up.
const leaveTime = 5 * time.Second

// leftOver is how many sessions are there though all callers have hung up; zero if nobody can
// tell.
func (w *watch) leftOver(ctx context.Context) (left int64) {
	wait(ctx, w.tell, "until the gateway has no session", leaveTime, func() bool {
		n, ok := w.sessions(ctx)
		if left = 0; ok {
			left = n
		}
		return left == 0
	})
	return left
}

// resources is what the process took in a run that has been measured.
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

// generator is what this program itself took in a run; first is how it stood before.
func generator(first process.Usage, took time.Duration) report.Process {
	p := report.Process{Goroutines: runtime.NumGoroutine()}
	if u, err := process.Read(0); err == nil {
		p.CPU, p.RSSMB, p.Threads, p.FDs = percent(u.CPU-first.CPU, took), inMB(u.RSS), u.Threads, u.FDs
	}
	return p
}

// percent is how much of one core a time is.
func percent(used, of time.Duration) float64 {
	if of <= 0 {
		return 0
	}
	return round(100 * float64(used) / float64(of))
}

func inMB(bytes int64) float64 { return round(float64(bytes) / (1 << 20)) }

func round(v float64) float64 { return float64(int64(v*100+0.5)) / 100 }
