package load

import (
	"fmt"
	"io"
	"strings"
	"time"

	"voicegw/internal/textutil"
)

// Progress shows a run's progress: on a terminal as one updated line, elsewhere as a line every logEvery. It is not
// safe for concurrent use.
type Progress struct {
	// Fixed after NewProgress.
	w     io.Writer
	live  *textutil.Status // nil if w is no terminal
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
	if s.Warmup {
		b.WriteString(" warming up")
	}
	fmt.Fprintf(&b, "  sessions %d/%d  turns %d", s.Sessions, s.Planned, s.Turns)
	if s.First.Count > 0 {
		fmt.Fprintf(&b, "  first audio p50 %.0f ms, p95 %.0f ms", s.First.P50, s.First.P95)
	}
	fmt.Fprintf(&b, "  errors %d", s.Errors)
	if s.Problems > s.Errors {
		fmt.Fprintf(&b, "  problems %d", s.Problems)
	}
	if s.Resumes+s.ResumesFailed > 0 {
		fmt.Fprintf(&b, "  resumes %d p99 %.0f ms", s.Resumes, s.ResumeP99)
		if s.ResumesFailed > 0 {
			fmt.Fprintf(&b, ", %d failed", s.ResumesFailed)
		}
	}
	if s.LagP99 > 0 {
		fmt.Fprintf(&b, "  lag p99 %.1f ms", s.LagP99)
	}
	if s.RSSMB > 0 {
		fmt.Fprintf(&b, "  gateway %.0f %% CPU, %.0f MB", s.CPU, s.RSSMB)
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
