package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"voicegw/client/load"
)

// loadProgress shows how a run stands: on a terminal on one line that is redrawn, elsewhere
// as a line now and then. One goroutine uses it.
type loadProgress struct {
	// Fixed after newLoadProgress.
	w        io.Writer
	terminal bool
	width    int
	quiet    bool

	shown bool
	told  time.Duration // when the last line was written, in a log
}

// tellEvery is how often a line is written where there is no terminal.
const tellEvery = 10 * time.Second

func newLoadProgress(w io.Writer, quiet bool) *loadProgress {
	width, isTerminal := terminal(w)
	return &loadProgress{w: w, terminal: isTerminal, width: width, quiet: quiet}
}

// show tells how the run stands. What cannot be shown is not missed.
func (l *loadProgress) show(s load.Status) {
	switch {
	case l.quiet:
	case l.terminal:
		l.shown = true
		line := []rune(loadStatus(s))
		if len(line) >= l.width {
			line = line[:max(l.width-1, 0)]
		}
		_, _ = fmt.Fprintf(l.w, "\r\x1b[K%s", string(line))
	case s.Elapsed-l.told >= tellEvery || s.Elapsed < l.told:
		l.told = s.Elapsed
		_, _ = fmt.Fprintln(l.w, loadStatus(s))
	}
}

// end leaves the line.
func (l *loadProgress) end() {
	if l.shown {
		_, _ = fmt.Fprint(l.w, "\r\x1b[K")
	}
}

// loadStatus is how a run stands, in a line.
func loadStatus(s load.Status) string {
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
	if s.LagP99 > 0 {
		fmt.Fprintf(&b, "  lag p99 %.1f ms", s.LagP99)
	}
	if s.RSSMB > 0 {
		fmt.Fprintf(&b, "  gateway %.0f %% CPU, %.0f MB", s.CPU, s.RSSMB)
	}
	return b.String()
}

// clock writes a time as 01:23, or 1:02:03 from an hour on.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}
