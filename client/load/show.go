package load

import (
	"fmt"
	"io"
	"strings"
	"time"

	"voicegw/client/load/report"
	"voicegw/internal/textutil"
)

// Progress shows a run's progress: on a terminal as one updated line, elsewhere as a line every logEvery. It is not
// safe for concurrent use.
type Progress struct {
	// Fixed after NewProgress.
	w     io.Writer
	live  *textutil.Status // nil if w is not a terminal
	quiet bool

	logged time.Duration // when the last log line was written
}

const logEvery = 10 * time.Second

// NewProgress writes to w; quiet disables all output.
func NewProgress(w io.Writer, quiet bool) *Progress {
	p := &Progress{w: w, quiet: quiet}
	if width, ok := textutil.Width(w); ok {
		p.live = &textutil.Status{W: w, Width: width}
	}
	return p
}

// Show shows the progress and ignores write errors.
func (p *Progress) Show(s Status) {
	switch {
	case p.quiet:
	case p.live != nil:
		p.live.Show(s.String())
	case s.Elapsed-p.logged >= logEvery || s.Elapsed < p.logged:
		p.logged = s.Elapsed
		_, _ = fmt.Fprintln(p.w, s.String())
	}
}

// End removes the updated line.
func (p *Progress) End() {
	if p.live != nil {
		p.live.Clear()
	}
}

// String formats the progress as one line.
func (s Status) String() string {
	var b strings.Builder
	b.WriteString(clock(s.Elapsed))
	if s.Total > 0 {
		b.WriteString("/" + clock(s.Total))
	}
	if s.Waiting != "" {
		return b.String() + " waiting " + s.Waiting
	}
	if s.warmup {
		b.WriteString(" warming up")
	}
	c := s.measured
	fmt.Fprintf(&b, "  sessions %d/%d  turns %d", c.LiveNow(), s.planned, c.Count(report.Turns))
	if first := c.Summary(report.FirstAudio); first.Count > 0 {
		fmt.Fprintf(&b, "  first audio p50 %.0f ms, p95 %.0f ms", first.P50, first.P95)
	}
	errors := c.Count(report.Errors)
	fmt.Fprintf(&b, "  errors %d", errors)
	if problems := c.ProblemCount(); problems > errors {
		fmt.Fprintf(&b, "  problems %d", problems)
	}
	resumes, failed := c.Count(report.Resumes), c.Count(report.ResumesFailed)
	if resumes+failed > 0 {
		fmt.Fprintf(&b, "  resumes %d p99 %.0f ms", resumes, c.Summary(report.Resume).P99)
	}
	if failed > 0 {
		fmt.Fprintf(&b, ", %d failed", failed)
	}
	if lag := c.Summary(report.SendLag).P99; lag > 0 {
		fmt.Fprintf(&b, "  lag p99 %.1f ms", lag)
	}
	if s.rss > 0 {
		fmt.Fprintf(&b, "  gateway %.0f %% CPU, %.0f MB", s.cpu, s.rss)
	}
	return b.String()
}

// clock formats a duration as 01:23, or 1:02:03 from an hour on.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// Status is a run's progress.
type Status struct {
	// Elapsed is the time since the start, Total the planned length; zero if unknown.
	Elapsed, Total time.Duration
	// Waiting describes a wait before or after the calls ("until ..."). Then the times are those of the wait, and the
	// rest is zero.
	Waiting string

	warmup   bool
	planned  int // sessions at most
	measured *report.Collector
	// cpu (percent of one core) and rss (MB) are the gateway's; zero if its process is not watched.
	cpu, rss float64
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
		if r.Progress != nil {
			r.Progress(Status{
				Elapsed: since, Total: p.Options.Duration, warmup: !counts, planned: p.Options.Sessions, measured: c,
				cpu: r.watch.cpu, rss: r.watch.rss,
			})
		}
	}
}
