package report

import (
	"fmt"
	"math"
	"time"
)

// Measured adds a collector's measurements to the report. sinceStart is the time since the run's start.
func (r *Report) Measured(c *Collector, sinceStart time.Duration) {
	r.TookMS = sinceStart.Milliseconds()
	r.Figures, r.Counters, r.Definitions = map[string]Summary{}, map[string]int64{}, map[string]string{}
	for _, f := range Figures() {
		d := f.Definition()
		r.Figures[d.Name] = c.Summary(f)
		r.Definitions[d.Name] = d.Meaning
	}
	for _, counter := range Counters() {
		d := counter.Definition()
		r.Counters[d.Name] = c.Count(counter)
		r.Definitions[d.Name] = d.Meaning
	}
	played := c.Count(PlayedMS)
	r.Sound = nil
	for i, buffer := range Buffers() {
		n, glitch := c.Underruns(i)
		s := Sound{BufferMS: buffer, Underruns: n, GlitchMS: round(float64(glitch) / float64(time.Millisecond))}
		if played > 0 {
			s.PerMinute = round(float64(n) * 60_000 / float64(played))
		}
		r.Sound = append(r.Sound, s)
	}
	r.Tools, r.Errors = c.Tools(), c.Codes()
	r.Problems, r.MoreProblems, r.Kinds = c.Problems()
	r.Series, r.Segments = c.Series(), c.Segments(sinceStart)
	r.Invalid = append(r.Invalid, invalid(r.Figures)...)
}

// invalid explains why the figures can't be trusted: the generator itself was late in one percent of cases or more.
func invalid(figures map[string]Summary) []string {
	limit := float64(Late / time.Millisecond)
	var why []string
	if lag := figures[SendLag.Definition().Name]; lag.P99 > limit {
		why = append(why, fmt.Sprintf("the generator sent 1 %% of its frames more than %.1f ms late (at most %g ms are "+
			"allowed): too many sessions or other programs for this machine", lag.P99, limit))
	}
	if wake := figures[WakeLag.Definition().Name]; wake.P99 > limit {
		why = append(why, fmt.Sprintf("the generator was woken more than %.1f ms late in 1 %% of the cases (at most %g ms are "+
			"allowed), so arrival times are wrong by as much", wake.P99, limit))
	}
	return why
}

func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// ratio is a/b, or zero.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// growth is the increase from start to end in percent.
func growth(start, end float64) float64 { return round(100 * ratio(end-start, start)) }
