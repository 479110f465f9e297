//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// median returns the median of values; 0 without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// clean returns the values of the runs that count.
func clean(runs []run, value func(run) float64) []float64 {
	var out []float64
	for _, r := range runs {
		if r.dirty() == "" {
			out = append(out, value(r))
		}
	}
	return out
}

func microsPF(r run) float64 { return r.MicrosPF }
func p50(r run) float64      { return r.Load.P50 }
func p99(r run) float64      { return r.Load.P99 }
func weight(r run) float64   { return r.KB }

// of returns the median of a relay in a result; 0 if it has none.
func (res result) of(k kind, value func(run) float64) float64 {
	for i := range res.step.kinds {
		if res.step.kinds[i].name == k.name {
			return median(clean(res.runs[i], value))
		}
	}
	return 0
}

// print writes a result as a table.
func (res result) print(out io.Writer) {
	if res.step.scenario.frame == 0 {
		res.printIdle(out)
		return
	}
	say(out, "\n%s\n", res.step.scenario.name)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(w, "relay\tCPU us/frame (min..max)\tx nginx\tp50 us\tadded\tp99 us\tadded\tKB/session\tmallocs/frame\tdelivered\tothers\tclean\n")
	var invalid []string // after the table, which has no columns for them
	for i, k := range res.step.kinds {
		runs := res.runs[i]
		cpu := clean(runs, microsPF)
		if len(cpu) == 0 {
			invalid = append(invalid, fmt.Sprintf("%s: INVALID, %s", k.name, runs[len(runs)-1].dirty()))
			continue
		}
		say(w, "%s\t%.1f (%.1f..%.1f)\t%s\t%.0f\t%s\t%.0f\t%s\t%.0f\t%s\t%.1f %%\t%.0f %%\t%d of %d\n", k.name,
			median(cpu), slices.Min(cpu), slices.Max(cpu),
			ratio(median(cpu), res.of(k.beside(nginx), microsPF)),
			median(clean(runs, p50)), added(median(clean(runs, p50)), res.of(direct, p50)),
			median(clean(runs, p99)), added(median(clean(runs, p99)), res.of(direct, p99)),
			median(clean(runs, weight)), mallocs(k, runs),
			median(clean(runs, func(r run) float64 { return 100 * float64(r.Load.Got) / float64(r.Load.Sent) })),
			median(clean(runs, func(r run) float64 { return 100 * r.Others })), len(cpu), len(runs))
	}
	_ = w.Flush()
	for _, line := range invalid {
		say(out, "%s\n", line)
	}
}

// printIdle prints the memory of idle sessions.
func (res result) printIdle(out io.Writer) {
	say(out, "\n%s\n", res.step.scenario.name)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(w, "relay\tempty MB\tKB/session\tsettled KB/session\tgoroutines/session\n")
	for i, k := range res.step.kinds {
		of := func(value func(run) float64) float64 {
			var all []float64
			for _, r := range res.runs[i] {
				all = append(all, value(r))
			}
			return median(all)
		}
		inside := "-\t-"
		if k.isGateway() {
			inside = fmt.Sprintf("%.1f\t%.1f", of(func(r run) float64 { return r.SettledKB }), of(func(r run) float64 { return r.Goroutines }))
		}
		say(w, "%s\t%.1f\t%.1f\t%s\n", k.name, of(func(r run) float64 { return r.EmptyMB }), of(weight), inside)
	}
	_ = w.Flush()
}

func (k kind) isGateway() bool {
	name, _, _ := k.plain()
	return strings.HasPrefix(name, gatewayKind.name)
}

func mallocs(k kind, runs []run) string {
	if !k.isGateway() {
		return "-"
	}
	return fmt.Sprintf("%.3f", median(clean(runs, func(r run) float64 { return r.Mallocs })))
}

func ratio(a, b float64) string {
	if b == 0 || a == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}

func added(a, base float64) string {
	if base == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.0f", a-base)
}

// say prints. If its reader is gone, the bench has been ended.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
