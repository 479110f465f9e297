package report

import (
	"crypto/sha256"
	_ "embed" // the page's template and scripts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
)

// uPlot (github.com/leeoniya/uPlot, MIT; uplot.LICENSE) draws the charts. The files are uPlot.iife.min.js and
// uPlot.min.css of its npm package, in the console's version.
var (
	//go:embed uplot.min.js
	uPlot string
	//go:embed uplot.min.css
	uPlotStyle string
	//go:embed charts.js
	chartsScript string
	//go:embed page.html
	pageText string
)

// script is the page's only script: the content security policy has its hash.
var script = uPlot + chartsScript

func scriptHash() string {
	sum := sha256.Sum256([]byte(script))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

var pageTemplate = template.Must(template.New("page").Funcs(textFuncs).Funcs(template.FuncMap{
	"script":    func() template.JS { return template.JS(script) },
	"plotStyle": func() template.CSS { return template.CSS(uPlotStyle) }, "scriptHash": scriptHash,
}).Parse(pageText))

// HTML writes the report as a self-contained page.
func (r *Report) HTML(w io.Writer) error { return writePage(w, "report", r.page()) }

func writePage(w io.Writer, name string, data any) error {
	if err := pageTemplate.ExecuteTemplate(w, name, data); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

type page struct {
	*Report
	Verdict string
	Facts   []fact
	Tiles   []tile
	Charts  []chart
	Groups  []pageGroup
	Errs    string
	Notes   []row
}

type fact struct{ Key, Value string }

type tile struct {
	Title, Value, Unit, Note string
	Bad                      bool
}

type pageGroup struct {
	Name   Group
	Rows   []row
	Counts []count
	Sound  []Sound
}

func (r *Report) page() page {
	p := page{Report: r, Verdict: r.verdict(), Facts: r.facts(), Tiles: r.tiles(), Charts: r.charts()}
	if len(r.Errors) > 0 {
		p.Errs = listed(r.Errors)
	}
	for _, g := range Groups() {
		group := pageGroup{Name: g, Rows: r.rows(g), Counts: r.counts(g)}
		if g == GroupSound && r.Counters["played_ms"] > 0 {
			group.Sound = r.Sound
		}
		if len(group.Rows)+len(group.Counts) > 0 {
			p.Groups = append(p.Groups, group)
		}
		p.Notes = append(p.Notes, group.Rows...)
	}
	return p
}

func (r *Report) facts() []fact {
	target := r.Target.URL
	if r.Target.Provider != "" {
		target += ", provider " + r.Target.Provider
	}
	if r.Target.Wire != "" {
		target += ", wire " + r.Target.Wire
	}
	script := fmt.Sprintf("%s (%s), frames of %d ms at %d Hz", r.Script.File, plural(int64(r.Script.Turns), "turn"),
		r.Target.FrameMS, r.Target.InputRate)
	facts := []fact{
		{"Target", target}, {"Run", r.planInWords()}, {"Script", script}, {"Speech", r.speechInWords()},
		{"Took", length(r.TookMS) + ", begun " + r.Began.Format("2006-01-02 15:04:05 UTC")}, {"Program", r.Program},
	}
	if len(r.Target.Unmeasured) > 0 {
		facts = append(facts, fact{"Without", r.unmeasuredInWords()})
	}
	if r.Stopped != "" {
		facts = append(facts, fact{"Stopped", r.Stopped})
	}
	return facts
}

func (r *Report) tiles() []tile {
	first, lag := r.figure(FirstAudio), r.figure(SendLag)
	tiles := []tile{
		{Title: "First audio, p50", Value: inMS(first.P50), Unit: "ms"},
		{Title: "First audio, p95", Value: inMS(first.P95), Unit: "ms",
			Note: fmt.Sprintf("95 %% interval %s to %s", inMS(first.Interval.P95.Low), inMS(first.Interval.P95.High))},
		{Title: "First audio, worst", Value: inMS(first.Max), Unit: "ms", Note: thousands(first.Count) + " answers"},
		{Title: "Sessions", Value: thousands(r.Counters["sessions"]), Note: fmt.Sprintf("%d at once", r.Plan.Sessions)},
		{Title: "Turns", Value: thousands(r.Counters["turns"]),
			Note: thousands(r.Counters["answered"]+r.Counters["interrupted"]) + " as the script wants"},
	}
	if first.Count == 0 {
		tiles = tiles[3:]
	}
	problems := r.MoreProblems + int64(len(r.Problems))
	return append(tiles,
		tile{Title: "Problems", Value: thousands(problems), Bad: problems > 0, Note: plural(r.Counters["errors"], "error")},
		tile{Title: "Send lag, p99", Value: inMS(lag.P99), Unit: "ms", Bad: !r.Valid(), Note: "of the generator"})
}
