package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Measured adds a collector's measurements to the report. sinceStart is the time since the run's start.
func (r *Report) Measured(c *Collector, sinceStart time.Duration) {
	r.TookMS = sinceStart.Milliseconds()
	r.Figures, r.Counters, r.Definitions = map[string]Summary{}, map[string]int64{}, map[string]string{}
	for f, d := range figureDefinitions {
		r.Figures[d.Name] = c.Summary(Figure(f))
		r.Definitions[d.Name] = d.Meaning
	}
	for counter, d := range counterDefinitions {
		r.Counters[d.Name] = c.Count(Counter(counter))
		r.Definitions[d.Name] = d.Meaning
	}
	played := c.Count(PlayedMS)
	r.Sound = nil
	for i, buffer := range Buffers() {
		n := c.underruns[i].Load()
		s := Sound{BufferMS: buffer, Underruns: n, GlitchMS: round(float64(c.glitchUS[i].Load()) / 1000)}
		if played > 0 {
			s.PerMinute = round(float64(n) * 60_000 / float64(played))
		}
		r.Sound = append(r.Sound, s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Tools, r.Errors = c.byUse(), maps.Clone(c.codes)
	r.Problems, r.MoreProblems, r.Kinds = slices.Clone(c.problems), c.found-int64(len(c.problems)), maps.Clone(c.kinds)
	r.Series, r.Segments = slices.Clone(c.series), c.steps(sinceStart)
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
