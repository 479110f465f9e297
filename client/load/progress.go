package load

import (
	"time"

	"voicegw/client/load/report"
)

// Status is a run's progress.
type Status struct {
	// Elapsed is the time since the start, Total the planned length; zero if unknown.
	Elapsed, Total time.Duration
	// Waiting describes a wait before or after the calls ("until ..."). Then the times are those of the wait, and the
	// rest is zero.
	Waiting string
	// Warmup means that this part is not measured.
	Warmup bool
	// Sessions are in progress; Planned is their maximum.
	Sessions int64
	Planned  int
	// Answered counts the Turns that met the script's expectations.
	Turns, Answered int64
	// First is first_audio so far.
	First            report.Summary
	Problems, Errors int64
	// Resumes and ResumesFailed count the returns after lost connections; ResumeP99 is the gateway's time for one, in
	// ms.
	Resumes, ResumesFailed int64
	ResumeP99              float64
	// LagP99 is the 99th percentile of send_lag so far, in ms.
	LagP99 float64
	// CPU (percent of one core) and RSSMB are the gateway's; zero if its process is not watched.
	CPU, RSSMB float64
}

// The interval of progress reports and the size of the series.
const (
	progressEvery = time.Second
	maxPoints     = 600 // in a series
)

// sample samples a run until all callers have hung up: every second for Progress, and at the series' interval.
func (r *run) sample(p Schedule, c *report.Collector, began time.Time, over <-chan struct{}, counts bool) {
	every := max(p.Options.Duration/maxPoints, progressEvery).Round(progressEvery)
	next := every
	steps := p.Steps[1:]
	t := time.NewTicker(progressEvery)
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
