package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"voicegw/client/load/measure/figure"
)

// maxShown of the problems stand in the text; all that were kept are in the other forms.
const maxShown = 20

// Text writes the report for a terminal. colour marks what is good and bad.
func (r *Report) Text(w io.Writer, colour bool) error {
	t := &text{colour: colour}
	t.head(r)
	for _, g := range figure.Groups() {
		t.group(r, g)
	}
	t.segments(r)
	t.tools(r)
	t.resources(r)
	t.problems(r)
	t.checks(r)
	t.definitions(r)
	_, err := io.WriteString(w, t.b.String())
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// text builds a report for a terminal.
type text struct {
	b      strings.Builder
	colour bool
}

func (t *text) line(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

// The colours of a terminal (ECMA-48, SGR).
const (
	bold  = "1"
	red   = "31;1"
	green = "32;1"
)

// mark colours a word.
func (t *text) mark(code, s string) string {
	if !t.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (t *text) title(s string) { t.line("\n%s", t.mark(bold, s)) }

// pair is a line of the head.
func (t *text) pair(key, value string) { t.line("  %-10s %s", key, printable(value)) }

func (t *text) head(r *Report) {
	code := red
	if r.verdict() == "passed" {
		code = green
	}
	t.line("%s %s", t.mark(bold, "voicegw load:"), t.mark(code, r.verdict()))
	for _, why := range r.Invalid {
		t.line("  %s", why)
	}
	t.line("")
	target := r.Target.URL
	if r.Target.Provider != "" {
		target += ", provider " + r.Target.Provider
	}
	t.pair("target", target)
	t.pair("run", r.planInWords())
	t.pair("script", r.scriptInWords())
	t.pair("speech", r.speechInWords())
	t.pair("took", length(r.TookMS)+", begun "+r.Began.Format("2006-01-02 15:04:05 UTC"))
	if r.Stopped != "" {
		t.pair("stopped", r.Stopped)
	}
}

// nameWidth is the width of the first column of a table.
const nameWidth = 26

// group shows the figures and the counters of one group.
func (t *text) group(r *Report, g figure.Group) {
	rows, counts := r.rows(g), r.counts(g)
	sound := g == figure.GroupSound && r.Counters["played_ms"] > 0
	if len(rows) == 0 && len(counts) == 0 {
		return
	}
	t.title(string(g))
	if len(rows) > 0 {
		t.line("  %-*s %9s %9s %9s %9s %9s %9s", nameWidth, "ms", "n", "p50", "p90", "p95", "p99", "max")
		for _, row := range rows {
			s := row.Summary
			t.line("  %-*s %9s %9s %9s %9s %9s %9s", nameWidth, row.Definition.Title, thousands(s.Count), inMS(s.P50), inMS(s.P90), inMS(s.P95), inMS(s.P99), inMS(s.Max))
		}
	}
	if sound {
		for _, s := range r.Sound {
			t.line("  with %3d ms of buffer       %s (%s a minute), %s of silence", s.BufferMS, plural(s.Underruns, "underrun"), trimmed(s.PerMinute), length(int64(s.GlitchMS)))
		}
	}
	if len(counts) > 0 {
		var words []string
		for _, c := range counts {
			word := thousands(c.N) + " " + c.Definition.Title
			if c.Bad {
				word = t.mark(red, word)
			}
			words = append(words, word)
		}
		t.line("  %s", strings.Join(words, " · "))
	}
	if g == figure.GroupConsistent && len(r.Errors) > 0 {
		t.line("  by code: %s", listed(r.Errors))
	}
	if g == figure.GroupGenerator {
		t.line("  %.0f %% of a core, %.0f MB, %d goroutines left", r.Generator.CPU, r.Generator.RSSMB, r.Generator.Goroutines)
	}
}

// trimmed is a number with two decimals at most.
func trimmed(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

// listed are counts, the largest first.
func listed(counts map[string]int64) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, k := range keys {
		keys[i] = thousands(counts[k]) + " " + printable(k)
	}
	return strings.Join(keys, " · ")
}

// segments shows the steps of a run.
func (t *text) segments(r *Report) {
	if len(r.Segments) < 2 {
		return
	}
	t.title("Steps")
	t.line("  %-*s %9s %9s %9s %9s %9s %9s", nameWidth, "first audio, ms", "sessions", "n", "p50", "p95", "p99", "problems")
	for i, s := range r.Segments {
		name := fmt.Sprintf("step %d, %s to %s", i+1, length(s.FromMS), length(s.ToMS))
		t.line("  %-*s %9s %9s %9s %9s %9s %9s", nameWidth, name, thousands(s.Sessions), thousands(s.First.Count),
			inMS(s.First.P50), inMS(s.First.P95), inMS(s.First.P99), thousands(s.Problems))
	}
}

// tools shows the calls by tool.
func (t *text) tools(r *Report) {
	if len(r.Tools) == 0 {
		return
	}
	t.title("Tools, one by one")
	t.line("  %-*s %9s %9s %9s %9s %9s %9s", nameWidth, "run, ms", "calls", "failed", "repeated", "p50", "p95", "max")
	for _, tool := range r.Tools {
		t.line("  %-*s %9s %9s %9s %9s %9s %9s", nameWidth, printable(tool.Tool), thousands(tool.Calls), thousands(tool.Failed), thousands(tool.Repeated),
			inMS(tool.Run.P50), inMS(tool.Run.P95), inMS(tool.Run.Max))
	}
}

// resources shows what the gateway took.
func (t *text) resources(r *Report) {
	if a := r.Audit; a != nil {
		t.title("Audit")
		if a.Problem != "" {
			t.line("  %s", printable(a.Problem))
		} else {
			t.line("  %s expected by what clients saw, %s found · %s carried out twice", plural(a.Expected, "record"), thousands(a.Found), plural(a.Twice, "side effect"))
		}
	}
	x := r.Resources
	if x == nil {
		return
	}
	t.title(fmt.Sprintf("What process %d took", x.PID))
	t.line("  CPU        %.1f %% of a core, %.1f %% at most; %.2f %% for each session, %.1f µs for each frame", x.CPU, x.CPUMax, x.CPUPerSession, x.CPUPerFrameUS)
	t.line("  memory     %.1f MB at most; %.0f KB for each session", x.RSSMB, x.RSSPerSessionKB)
	t.line("  at most    %d threads, %d descriptors", x.Threads, x.FDs)
	t.line("  %-*s %9s %9s %9s %9s %9s", nameWidth-8, "without sessions", "RSS MB", "heap MB", "gorout.", "threads", "descr.")
	for _, s := range []struct {
		when string
		State
	}{{"before", x.Start}, {"after", x.End}} {
		t.line("  %-*s %9.1f %9s %9s %9d %9d", nameWidth-8, s.when, s.RSSMB, orDash(s.HeapMB, "%.1f"), orDash(float64(s.Goroutines), "%.0f"), s.Threads, s.FDs)
	}
}

// orDash returns a value, or a dash if it is missing.
func orDash(v float64, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// problems shows the first problems.
func (t *text) problems(r *Report) {
	if len(r.Problems) == 0 {
		return
	}
	t.title("Problems")
	for i, p := range r.Problems {
		if i == maxShown {
			break
		}
		t.wrapped("  ", "      ", problemInWords(p))
	}
	if more := int64(len(r.Problems)-maxShown) + r.MoreProblems; more > 0 {
		t.line("  and %s more", thousands(more))
	}
}

// checks shows what the run was held against.
func (t *text) checks(r *Report) {
	if len(r.Checks) == 0 {
		return
	}
	t.title("Checks")
	for _, c := range r.Checks {
		word := t.mark(green, "ok  ")
		if c.Failed {
			word = t.mark(red, "FAIL")
		}
		t.line("  %s  fail if %-32s %s", word, printable(c.FailIf), c.Got)
	}
}

// definitions say what the figures are that are shown.
func (t *text) definitions(r *Report) {
	t.title("What the figures are")
	for _, g := range figure.Groups() {
		for _, row := range r.rows(g) {
			t.wrapped("  ", "      ", fmt.Sprintf("%s: %s.", row.Definition.Name, row.Definition.Meaning))
		}
	}
}

// lineWidth is where lines of prose are broken.
const lineWidth = 100

// wrapped writes prose in lines, the first and the others with their own beginnings.
func (t *text) wrapped(first, others, s string) {
	line := first
	empty := true
	for _, word := range strings.Fields(s) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineWidth {
			t.line("%s", line)
			line, empty = others, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	t.line("%s", line)
}
