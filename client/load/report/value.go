package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

type unit int

const (
	unitCount unit = iota
	unitMS
	unitPercent
	unitMB
	unitPerMinute
)

// stats are a distribution's values for thresholds.
var stats = map[string]func(Summary) float64{
	"p50":  func(s Summary) float64 { return s.P50 },
	"p90":  func(s Summary) float64 { return s.P90 },
	"p95":  func(s Summary) float64 { return s.P95 },
	"p99":  func(s Summary) float64 { return s.P99 },
	"min":  func(s Summary) float64 { return s.Min },
	"max":  func(s Summary) float64 { return s.Max },
	"mean": func(s Summary) float64 { return s.Mean },
}

// statCount is the only one that is not a time.
const statCount = "count"

// errorPrefix begins names of errors by code: error_no_answer.
const errorPrefix = "error_"

// measured is a value of a report; ok is false if it is missing.
type measured struct {
	value float64
	ok    bool
}

// value is a value for thresholds.
type value struct {
	unit unit
	get  func(*Report) measured
}

// other has the values that are neither figures nor counters.
var other = map[string]value{
	"problems": {unitCount, func(r *Report) measured {
		n := r.MoreProblems + int64(len(r.Problems))
		return measured{float64(n), true}
	}},
	"answered_share": {unitPercent, func(r *Report) measured {
		good, turns := r.Counters["answered"]+r.Counters["interrupted"], r.Counters["turns"]-r.Counters["cut"]
		return measured{100 * ratio(float64(good), float64(turns)), turns > 0}
	}},
	"cpu":                ofResources(unitPercent, func(x *Resources) float64 { return x.CPU }),
	"rss":                ofResources(unitMB, func(x *Resources) float64 { return x.RSSMB }),
	"rss_growth":         ofGrowth(func(s State) float64 { return s.RSSMB }),
	"heap_growth":        ofGrowth(func(s State) float64 { return s.HeapMB }),
	"goroutine_growth":   ofGrowth(func(s State) float64 { return float64(s.Goroutines) }),
	"fd_growth":          ofGrowth(func(s State) float64 { return float64(s.FDs) }),
	"audit_missing":      ofAudit(func(a *Audit) int64 { return a.Expected - a.Found }),
	"side_effects_twice": ofAudit(func(a *Audit) int64 { return a.Twice }),
}

func ofAudit(get func(*Audit) int64) value {
	return value{unitCount, func(r *Report) measured {
		if r.Audit == nil || r.Audit.Problem != "" {
			return measured{}
		}
		return measured{float64(get(r.Audit)), true}
	}}
}

func ofResources(u unit, get func(*Resources) float64) value {
	return value{u, func(r *Report) measured {
		if r.Resources == nil {
			return measured{}
		}
		return measured{get(r.Resources), true}
	}}
}

func ofGrowth(get func(State) float64) value {
	return value{unitPercent, func(r *Report) measured {
		if r.Resources == nil || get(r.Resources.Start) == 0 {
			return measured{}
		}
		return measured{growth(get(r.Resources.Start), get(r.Resources.End)), true}
	}}
}

// soundNames returns underruns_60_per_min and the like.
func soundNames() []string {
	var out []string
	for _, b := range Buffers() {
		out = append(out, fmt.Sprintf("underruns_%d_per_min", b))
	}
	return out
}

// valueOf finds a value by name.
func valueOf(name string) (v value, ok bool) {
	if v, ok := other[name]; ok {
		return v, true
	}
	if at := strings.LastIndexByte(name, '_'); at >= 0 && isFigure(name[:at]) {
		figure, stat := name[:at], name[at+1:] // first_audio and p95
		if stat == statCount {
			return value{unitCount, func(r *Report) measured { return measured{float64(r.Figures[figure].Count), true} }}, true
		}
		if get := stats[stat]; get != nil {
			return value{unitMS, func(r *Report) measured { return measured{get(r.Figures[figure]), r.Figures[figure].Count > 0} }}, true
		}
	}
	if i := slices.Index(soundNames(), name); i >= 0 {
		return value{unitPerMinute, func(r *Report) measured {
			if i >= len(r.Sound) {
				return measured{}
			}
			return measured{r.Sound[i].PerMinute, r.Counters["played_ms"] > 0}
		}}, true
	}
	if isCounter(name) {
		return value{unitCount, func(r *Report) measured { return measured{float64(r.Counters[name]), true} }}, true
	}
	code, ok := strings.CutPrefix(name, errorPrefix)
	return value{unitCount, func(r *Report) measured { return measured{float64(r.Errors[code]), true} }}, ok && code != ""
}

func isFigure(name string) bool {
	return slices.ContainsFunc(Figures(), func(f Figure) bool { return f.Definition().Name == name })
}

func isCounter(name string) bool {
	return slices.ContainsFunc(Counters(), func(c Counter) bool { return c.Definition().Name == name })
}

// names lists all threshold names for a message.
func names() []string {
	var out []string
	for _, f := range Figures() {
		for _, stat := range []string{"p50", "p95", "p99", "max"} {
			out = append(out, f.Definition().Name+"_"+stat)
		}
	}
	for _, c := range Counters() {
		out = append(out, c.Definition().Name)
	}
	out = append(out, OtherNames()...)
	slices.Sort(out)
	return out
}

// OtherNames returns the threshold names that are neither figures nor counters.
func OtherNames() []string {
	return append(slices.Sorted(maps.Keys(other)), soundNames()...)
}

// inWords formats a value with its unit.
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
