package load

import (
	"time"

	"voicegw/client/load/report"
)

// Status is how a run stands.
type Status struct {
	// Elapsed is since it began, Total how long it is to last; zero if that is not known.
	Elapsed, Total time.Duration
	// Waiting says what is waited for before or after the calls ("until ..."), and then the
	// times are of that, Total at most, and the rest is zero.
	Waiting string
	// Warmup: it does not count yet.
	Warmup bool
	// Sessions are in progress, of Planned at most.
	Sessions int64
	Planned  int
	// Turns were begun, Answered of them came out as the script wants.
	Turns, Answered int64
	// First is first_audio so far.
	First report.Summary
	// Problems and Errors so far.
	Problems, Errors int64
	// Resumes are sessions that went on after a lost connection, ResumesFailed those that did not,
	// ResumeP99 how long the gateway took for it, in ms.
	Resumes, ResumesFailed int64
	ResumeP99              float64
	// LagP99 is of send_lag so far, in ms.
	LagP99 float64
	// CPU (in percent of one core) and RSSMB of the gateway; zero if the process is not watched.
	CPU, RSSMB float64
}

// How often a run is looked at, and how many samples of it are kept.
const (
	tellEvery = time.Second
	maxPoints = 600 // in a series
)

// sample looks at a run until all callers have hung up: every second for whoever watches,
// and as often as a series has room for it.
func (r *run) sample(p Schedule, c *report.Collector, began time.Time, over <-chan struct{}, counts bool) {
	every := max(p.Options.Duration/maxPoints, tellEvery).Round(tellEvery)
	next := every
	steps := p.Steps[1:]
	t := time.NewTicker(tellEvery)
	defer t.Stop()
	for running := true; running; {
		var now time.Time
		select {
		case now = <-t.C:
		case <-over:
			now, running = time.Now(), false
		}
		since := now.Sub(began)
		if counts {
			for len(steps) > 0 && since >= steps[0] {
				c.NextSegment(since)
				steps = steps[1:]
			}
			if since >= next || !running {
				r.watch.cpu, r.watch.rss = r.watch.look(now)
				c.Sample(since, r.watch.cpu, r.watch.rss)
				next += every
			}
		}
		if r.o.Progress != nil {
			r.o.Progress(r.status(p, c, since, !counts))
		}
	}
}

func (r *run) status(p Schedule, c *report.Collector, since time.Duration, warmup bool) Status {
	return Status{
		Elapsed: since, Total: p.Options.Duration, Warmup: warmup,
		Sessions: c.LiveNow(), Planned: p.Options.Sessions,
		Turns: c.Count(report.Turns), Answered: c.Count(report.Answered) + c.Count(report.Interrupted),
		First:    c.Summary(report.FirstAudio),
		Problems: c.ProblemCount(), Errors: c.Count(report.Errors),
		Resumes: c.Count(report.Resumes), ResumesFailed: c.Count(report.ResumesFailed), ResumeP99: c.Summary(report.Resume).P99,
		LagP99: c.Summary(report.SendLag).P99,
		CPU:    r.watch.cpu, RSSMB: r.watch.rss,
	}
}
