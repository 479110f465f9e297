package report

import (
	"fmt"
	"io"
	"math"

	"voicegw/internal/textutil"
)

// Comparison compares two reports.
type Comparison struct {
	NameA, NameB string
	Warnings     []string
	Facts        []comparedFact
	Groups       []comparedGroup
	Charts       []chart
}

type comparedFact struct{ Key, A, B string }

type comparedGroup struct {
	Name Group
	Rows []comparedRow
}

type comparedRow struct {
	Title, Meaning string
	A, B, Change   string
	// Word rates the change; Class is better, worse, or empty.
	Word, Class string
}

// The smallest changes that count.
const (
	leastShare = 0.02
	leastMS    = 1
)

// Compare compares two reports; the names label them.
func Compare(nameA string, a *Report, nameB string, b *Report) *Comparison {
	c := &Comparison{NameA: nameA, NameB: nameB, Warnings: unlike(nameA, a, nameB, b)}
	c.Facts = []comparedFact{{"Verdict", a.verdict(), b.verdict()}}
	factsA, factsB := a.facts(), b.facts()
	for i := range min(len(factsA), len(factsB)) {
		if factsA[i].Key == factsB[i].Key {
			c.Facts = append(c.Facts, comparedFact{factsA[i].Key, factsA[i].Value, factsB[i].Value})
		}
	}
	for _, g := range Groups() {
		group := comparedGroup{Name: g}
		for f, d := range figureDefinitions {
			if d.Group == g && !(a.repeats(Figure(f)) && b.repeats(Figure(f))) {
				group.Rows = append(group.Rows, compareFigure(d, a.Figures[d.Name], b.Figures[d.Name])...)
			}
		}
		for _, d := range counterDefinitions {
			if d.Group == g && d.Name != quiet {
				group.Rows = append(group.Rows, compareCount(d, a.Counters[d.Name], b.Counters[d.Name])...)
			}
		}
		if len(group.Rows) > 0 {
			c.Groups = append(c.Groups, group)
		}
	}
	for _, f := range []Figure{FirstAudio, Answer, Flush} {
		d := f.Definition()
		chart := distribution(d.Title, curve{nameA, a.figure(f)}, curve{nameB, b.figure(f)})
		if !chart.empty() {
			c.Charts = append(c.Charts, chart)
		}
	}
	return c
}

func unlike(nameA string, a *Report, nameB string, b *Report) []string {
	var why []string
	differ := func(what string, x, y any) {
		if x != y {
			why = append(why, fmt.Sprintf("The runs differ: %s is %v in %s and %v in %s.", what, x, nameA, y, nameB))
		}
	}
	differ("the mode", a.Plan.Mode, b.Plan.Mode)
	differ("the number of sessions", a.Plan.Sessions, b.Plan.Sessions)
	differ("the duration", length(a.Plan.DurationMS), length(b.Plan.DurationMS))
	differ("the script", a.Script.File, b.Script.File)
	differ("the length of a frame", a.Target.FrameMS, b.Target.FrameMS)
	differ("the provider", a.Target.Provider, b.Target.Provider)
	for _, r := range []struct {
		name string
		*Report
	}{{nameA, a}, {nameB, b}} {
		if len(r.Invalid) > 0 {
			why = append(why, fmt.Sprintf("%s is invalid: %s.", r.name, r.Invalid[0]))
		}
	}
	return why
}

func compareFigure(d Definition, a, b Summary) []comparedRow {
	if a.Count == 0 && b.Count == 0 {
		return nil
	}
	var out []comparedRow
	for i, name := range []string{"p50", "p95", "p99"} {
		row := comparedRow{Title: d.Title + ", " + name, Meaning: d.Meaning, A: "-", B: "-"}
		before, within := a.percentile(i)
		after, afterWithin := b.percentile(i)
		if a.Count > 0 {
			row.A = inMS(before) + " ms"
		}
		if b.Count > 0 {
			row.B = inMS(after) + " ms"
		}
		if a.Count > 0 && b.Count > 0 {
			row.Change = change(before, after)
			row.Word, row.Class = worth(before, after, within, afterWithin)
		}
		out = append(out, row)
	}
	return out
}

// percentile returns the 50th, 95th or 99th percentile and its interval.
func (s Summary) percentile(i int) (float64, Interval) {
	return []float64{s.P50, s.P95, s.P99}[i], []Interval{s.Interval.P50, s.Interval.P95, s.Interval.P99}[i]
}

func worth(a, b float64, ia, ib Interval) (word, class string) {
	if diff := math.Abs(b - a); diff < leastMS || diff < leastShare*a {
		return "", ""
	}
	switch {
	case ib.Low > ia.High:
		return "worse", "worse"
	case ib.High < ia.Low:
		return "better", "better"
	default:
		return "may be chance", ""
	}
}

func change(a, b float64) string {
	if a == 0 || math.Abs(b-a) < 0.0005*a {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*(b-a)/a)
}

func compareCount(d Definition, a, b int64) []comparedRow {
	if a == 0 && b == 0 {
		return nil
	}
	row := comparedRow{Title: d.Title, Meaning: d.Meaning, A: thousands(a), B: thousands(b), Change: change(float64(a), float64(b))}
	if isBad(d.Name) {
		switch {
		case b > a:
			row.Word, row.Class = "worse", "worse"
		case b < a:
			row.Word, row.Class = "better", "better"
		}
	}
	return []comparedRow{row}
}

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer, colour bool) error {
	return writeText(w, colour, "comparison", c)
}

// HTML writes the comparison as a self-contained page.
func (c *Comparison) HTML(w io.Writer) error { return writePage(w, "comparison", c) }

func clipped(s string) string {
	r := []rune(textutil.Printable(s))
	if len(r) > 14 {
		return "…" + string(r[len(r)-13:])
	}
	return string(r)
}
