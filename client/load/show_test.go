package load

import (
	"strings"
	"testing"
	"time"

	"voicegw/client/load/report"
	"voicegw/internal/textutil"
)

// TestStatusLine: unknown values are omitted.
func TestStatusLine(t *testing.T) {
	warm, running := report.New(), report.New()
	warm.Live(1)
	warm.Add(report.Turns, 1)
	running.Live(5)
	running.Add(report.Turns, 70)
	for i := range 20 {
		first := 801 * time.Millisecond
		if i > 17 {
			first = 950 * time.Millisecond
		}
		running.Record(report.FirstAudio, first)
	}
	running.Record(report.SendLag, 1250*time.Microsecond)
	for range 3 {
		running.Problem(report.Problem{})
	}
	running.Add(report.Errors, 2)
	for name, c := range map[string]struct {
		status Status
		want   string
	}{
		"begun": {Status{Elapsed: 2 * time.Second, planned: 5, measured: report.New()}, "00:02  sessions 0/5  turns 0  errors 0"},
		"warm": {
			Status{Elapsed: time.Second, Total: time.Minute, warmup: true, planned: 5, measured: warm},
			"00:01/01:00 warming up  sessions 1/5  turns 1  errors 0",
		},
		"in progress": {
			Status{Elapsed: 61 * time.Minute, Total: 2 * time.Hour, planned: 5, measured: running, cpu: 40, rss: 61},
			"1:01:00/2:00:00  sessions 5/5  turns 70  first audio p50 801 ms, p95 950 ms  errors 2  problems 3  lag p99 1.2 ms  gateway 40 % CPU, 61 MB",
		},
		"at rest": {
			Status{Elapsed: 3 * time.Second, Total: 15 * time.Second, Waiting: "until the gateway is at rest"},
			"00:03/00:15 waiting until the gateway is at rest",
		},
	} {
		if got := c.status.String(); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// TestProgressInALog: a line every ten seconds, and one at the start of the next phase.
func TestProgressInALog(t *testing.T) {
	var b strings.Builder
	l := NewProgress(&b, false)
	for s := range 25 {
		l.Show(Status{Elapsed: time.Duration(s) * time.Second, measured: report.New()})
	}
	l.Show(Status{Elapsed: time.Second, Waiting: "until dawn"})
	l.End()
	var at []string
	for line := range strings.Lines(b.String()) {
		at = append(at, strings.TrimSuffix(line, "  sessions 0/0  turns 0  errors 0\n"))
	}
	if got := strings.Join(at, ", "); got != "00:10, 00:20, 00:01 waiting until dawn\n" {
		t.Errorf("the output is: %s", got)
	}
	b.Reset()
	l = NewProgress(&b, true)
	l.Show(Status{Elapsed: time.Minute})
	if l.End(); b.Len() > 0 {
		t.Errorf("the quiet output is: %s", b.String())
	}
}

// TestProgressOnATerminal: one updated line, no wider than the terminal, removed at the end.
func TestProgressOnATerminal(t *testing.T) {
	var b strings.Builder
	l := &Progress{w: &b, live: &textutil.Status{W: &b, Width: 10}}
	l.Show(Status{Elapsed: time.Second, measured: report.New()})
	l.Show(Status{Elapsed: 2 * time.Second, measured: report.New()})
	l.End()
	if got := b.String(); got != "\r\x1b[K00:01  se\r\x1b[K00:02  se\r\x1b[K" {
		t.Errorf("the output is %q", got)
	}
}
