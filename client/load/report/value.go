package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"voicegw/client/load/measure"
	"voicegw/client/load/measure/counter"
	"voicegw/client/load/measure/figure"
)

// unit is what a value is measured in.
type unit int

const (
	unitCount unit = iota
	unitMS
	unitPercent
	unitMB
	unitPerMinute
)

// stats are the values of a distribution that a threshold can be about.
var stats = map[string]func(measure.Summary) float64{
	"p50":  func(s measure.Summary) float64 { return s.P50 },
	"p90":  func(s measure.Summary) float64 { return s.P90 },
	"p95":  func(s measure.Summary) float64 { return s.P95 },
	"p99":  func(s measure.Summary) float64 { return s.P99 },
	"min":  func(s measure.Summary) float64 { return s.Min },
	"max":  func(s measure.Summary) float64 { return s.Max },
	"mean": func(s measure.Summary) float64 { return s.Mean },
}

// statCount is the one that is no time.
const statCount = "count"

// errorPrefix begins the names of errors by their code: error_no_answer.
const errorPrefix = "error_"

// measured is a value of a report; ok is false if it is missing.
type measured struct {
	value float64
	ok    bool
}

// other are the values that are neither figures nor counters.
var other = map[string]struct {
	unit unit
	get  func(*Report) measured
}{
	"problems": {unitCount, func(r *Report) measured {
		n := r.MoreProblems + int64(len(r.Problems))
		return measured{float64(n), true}
	}},
	"answered_share": {unitPercent, func(r *Report) measured {
		good, turns := r.Counters["answered"]+r.Counters["interrupted"], r.Counters["turns"]-r.Counters["cut"]
		return measured{100 * ratio(float64(good), float64(turns)), turns > 0}
	}},
	"cpu":              {unitPercent, func(r *Report) measured { return ofResources(r, func(x *Resources) float64 { return x.CPU }) }},
	"rss":              {unitMB, func(r *Report) measured { return ofResources(r, func(x *Resources) float64 { return x.RSSMB }) }},
	"rss_growth":       {unitPercent, func(r *Report) measured { return grown(r, func(s State) float64 { return s.RSSMB }) }},
	"heap_growth":      {unitPercent, func(r *Report) measured { return grown(r, func(s State) float64 { return s.HeapMB }) }},
	"goroutine_growth": {unitPercent, func(r *Report) measured { return grown(r, func(s State) float64 { return float64(s.Goroutines) }) }},
	"fd_growth":        {unitPercent, func(r *Report) measured { return grown(r, func(s State) float64 { return float64(s.FDs) }) }},
	"audit_missing": {unitCount, func(r *Report) measured {
		if r.Audit == nil || r.Audit.Problem != "" {
			return measured{}
		}
		return measured{float64(r.Audit.Expected - r.Audit.Found), true}
	}},
	"side_effects_twice": {unitCount, func(r *Report) measured {
		if r.Audit == nil || r.Audit.Problem != "" {
			return measured{}
		}
		return measured{float64(r.Audit.Twice), true}
	}},
}

func ofResources(r *Report, get func(*Resources) float64) measured {
	if r.Resources == nil {
		return measured{}
	}
	return measured{get(r.Resources), true}
}

func grown(r *Report, get func(State) float64) measured {
	if r.Resources == nil || get(r.Resources.Start) == 0 {
		return measured{}
	}
	return measured{growth(get(r.Resources.Start), get(r.Resources.End)), true}
}

// soundNames are underruns_60_per_min and the like.
func soundNames() []string {
	var out []string
	for _, b := range measure.Buffers() {
		out = append(out, fmt.Sprintf("underruns_%d_per_min", b))
	}
	return out
}

// unitOf is the unit of a named value; false for an unknown name.
func unitOf(name string) (unit, bool) {
	if figure, stat, ok := cutFigure(name); ok {
		if _, ok := stats[stat]; ok && isFigure(figure) {
			return unitMS, true
		}
		if stat == statCount && isFigure(figure) {
			return unitCount, true
		}
	}
	if o, ok := other[name]; ok {
		return o.unit, true
	}
	if slices.Contains(soundNames(), name) {
		return unitPerMinute, true
	}
	if code, ok := strings.CutPrefix(name, errorPrefix); ok && code != "" {
		return unitCount, true
	}
	return unitCount, isCounter(name)
}

// cutFigure cuts first_audio_p95 into its two parts.
func cutFigure(name string) (figure, stat string, ok bool) {
	at := strings.LastIndexByte(name, '_')
	if at < 0 {
		return "", "", false
	}
	return name[:at], name[at+1:], true
}

func isFigure(name string) bool {
	return slices.ContainsFunc(figure.Figures(), func(f figure.Figure) bool { return f.Definition().Name == name })
}

func isCounter(name string) bool {
	return slices.ContainsFunc(counter.Counters(), func(c counter.Counter) bool { return c.Definition().Name == name })
}

// value is what a report has under a name that unitOf knows.
func (r *Report) value(name string) measured {
	if o, ok := other[name]; ok {
		return o.get(r)
	}
	if figure, stat, ok := cutFigure(name); ok && isFigure(figure) {
		s := r.Figures[figure]
		if stat == statCount {
			return measured{float64(s.Count), true}
		}
		if get := stats[stat]; get != nil {
			return measured{get(s), s.Count > 0}
		}
	}
	for i, sound := range soundNames() {
		if name == sound && i < len(r.Sound) {
			return measured{r.Sound[i].PerMinute, r.Counters["played_ms"] > 0}
		}
	}
	if isCounter(name) {
		return measured{float64(r.Counters[name]), true}
	}
	code, ok := strings.CutPrefix(name, errorPrefix)
	return measured{float64(r.Errors[code]), ok}
}

// names are all that a threshold can be about, for a message.
func names() []string {
	var out []string
	for _, f := range figure.Figures() {
		for _, stat := range []string{"p50", "p95", "p99", "max"} {
			out = append(out, f.Definition().Name+"_"+stat)
		}
	}
	for _, c := range counter.Counters() {
		out = append(out, c.Definition().Name)
	}
	out = append(out, OtherNames()...)
	slices.Sort(out)
	return out
}

// OtherNames are what a threshold can be about beside figures and counters.
func OtherNames() []string {
	return append(slices.Sorted(maps.Keys(other)), soundNames()...)
}

// inWords writes a value with its unit.
func (u unit) inWords(v float64) string {
	n := strconv.FormatFloat(round(v), 'f', -1, 64)
	switch u {
	case unitMS:
		return inMS(v) + " ms"
	case unitPercent:
		return n + " %"
	case unitMB:
		return n + " MB"
	case unitPerMinute:
		return n + " per minute"
	default:
		return n
	}
}
