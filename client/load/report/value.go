package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

var stats = map[string]func(Summary) float64{
	"p50":  func(s Summary) float64 { return s.P50 },
	"p90":  func(s Summary) float64 { return s.P90 },
	"p95":  func(s Summary) float64 { return s.P95 },
	"p99":  func(s Summary) float64 { return s.P99 },
	"min":  func(s Summary) float64 { return s.Min },
	"max":  func(s Summary) float64 { return s.Max },
	"mean": func(s Summary) float64 { return s.Mean },
}

// value is a value for thresholds; get's result is false if it is missing.
type value struct {
	unit *unit
	get  func(*Report) (float64, bool)
}

func counted(get func(*Report) int64) value {
	return value{unitCount, func(r *Report) (float64, bool) { return float64(get(r)), true }}
}

var other = map[string]value{
	"problems": counted(func(r *Report) int64 { return r.MoreProblems + int64(len(r.Problems)) }),
	"answered_share": {unitPercent, func(r *Report) (float64, bool) {
		good, turns := r.Counters["answered"]+r.Counters["interrupted"], r.Counters["turns"]-r.Counters["cut"]
		return 100 * ratio(float64(good), float64(turns)), turns > 0
	}},
	"cpu":                ofResources(unitPercent, func(x *Resources) (float64, bool) { return x.CPU, true }),
	"rss":                ofResources(unitMB, func(x *Resources) (float64, bool) { return x.RSSMB, true }),
	"rss_growth":         ofGrowth(func(s State) float64 { return s.RSSMB }),
	"heap_growth":        ofGrowth(func(s State) float64 { return s.HeapMB }),
	"goroutine_growth":   ofGrowth(func(s State) float64 { return float64(s.Goroutines) }),
	"fd_growth":          ofGrowth(func(s State) float64 { return float64(s.FDs) }),
	"audit_missing":      ofAudit(func(a *Audit) int64 { return a.Expected - a.Found }),
	"side_effects_twice": ofAudit(func(a *Audit) int64 { return a.Twice }),
}

func ofAudit(get func(*Audit) int64) value {
	return value{unitCount, func(r *Report) (float64, bool) {
		if r.Audit == nil || r.Audit.Problem != "" {
			return 0, false
		}
		return float64(get(r.Audit)), true
	}}
}

func ofResources(u *unit, get func(*Resources) (float64, bool)) value {
	return value{u, func(r *Report) (float64, bool) {
		if r.Resources == nil {
			return 0, false
		}
		return get(r.Resources)
	}}
}

func ofGrowth(get func(State) float64) value {
	return ofResources(unitPercent, func(x *Resources) (float64, bool) {
		return growth(get(x.Start), get(x.End)), get(x.Start) != 0
	})
}

func soundNames() []string {
	var out []string
	for _, b := range Buffers() {
		out = append(out, fmt.Sprintf("underruns_%d_per_min", b))
	}
	return out
}

func valueOf(name string) (v value, ok bool) {
	if v, ok := other[name]; ok {
		return v, true
	}
	if at := strings.LastIndexByte(name, '_'); at >= 0 && defines(figureDefinitions, name[:at]) {
		figure, stat := name[:at], name[at+1:] // first_audio and p95
		if stat == "count" {
			return counted(func(r *Report) int64 { return r.Figures[figure].Count }), true
		}
		if get := stats[stat]; get != nil {
			return value{unitMS, func(r *Report) (float64, bool) { return get(r.Figures[figure]), r.Figures[figure].Count > 0 }}, true
		}
	}
	if i := slices.Index(soundNames(), name); i >= 0 {
		return value{unitPerMinute, func(r *Report) (float64, bool) {
			if i >= len(r.Sound) {
				return 0, false
			}
			return r.Sound[i].PerMinute, r.Counters["played_ms"] > 0
		}}, true
	}
	if defines(counterDefinitions, name) {
		return counted(func(r *Report) int64 { return r.Counters[name] }), true
	}
	code, ok := strings.CutPrefix(name, "error_") // error_no_answer
	return counted(func(r *Report) int64 { return r.Errors[code] }), ok && code != ""
}

func defines(all []Definition, name string) bool {
	return slices.ContainsFunc(all, func(d Definition) bool { return d.Name == name })
}

func names() []string {
	var out []string
	for _, d := range figureDefinitions {
		for _, stat := range []string{"p50", "p95", "p99", "max"} {
			out = append(out, d.Name+"_"+stat)
		}
	}
	for _, d := range counterDefinitions {
		out = append(out, d.Name)
	}
	out = append(out, OtherNames()...)
	slices.Sort(out)
	return out
}

// OtherNames returns the threshold names that are neither figures nor counters.
func OtherNames() []string {
	return append(slices.Sorted(maps.Keys(other)), soundNames()...)
}
