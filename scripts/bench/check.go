//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// figure is a figure in which two builds of the gateway are compared.
type figure struct {
	name   string
	about  string
	margin float64 // how much worse it may be, as a fraction of the release's
	least  float64 // a difference that is never a finding
}

// figures are what is compared. The margins are the differences of the same program from run
// to run on a busy machine with two cores.
var figures = []figure{
	{"cpu_20ms", "CPU per frame, 200 sessions, 20 ms, us", 0.15, 0.5},
	{"cpu_100ms", "CPU per frame, 500 sessions, 100 ms, us", 0.15, 0.5},
	{"p50_20ms", "round trip p50, 100 sessions, 20 ms, us", 0.20, 20},
	{"mallocs_20ms", "allocations per frame", 0, 0.02},
	{"idle_kb", "memory per idle session, KB, settled", 0.10, 0.5},
}

// checkPlan returns the plan that measures the figures of some builds of the gateway.
func checkPlan(builds []kind) []step {
	return []step{
		{talking(200, 20*time.Millisecond, 2*time.Second, 6*time.Second), builds, 5},
		{talking(500, 100*time.Millisecond, 2*time.Second, 6*time.Second), builds, 5},
		// With 200 sessions a slow machine is full, and a round trip is mostly waiting.
		{talking(100, 20*time.Millisecond, 2*time.Second, 6*time.Second), builds, 5},
		{idle(2000, storeRests), builds, 1},
	}
}

var (
	errNoCleanRun = errors.New("no run was clean: the machine is too busy, try again when it is not")
	errWorse      = errors.New("worse than the release")
)

// check measures the program of a release beside this one, in turns, and fails if this one is
// worse: what a frame and a round trip take differs from machine to machine and from day to
// day, so that only what was measured in one run can be compared.
func (b *bench) check(program, version string) error {
	release := gatewayKind.build(program)
	var results []result
	for _, s := range checkPlan([]kind{release, gatewayKind}) {
		res, err := b.carryOut(s)
		if err != nil {
			return err
		}
		res.print(b.out)
		results = append(results, res)
	}
	var found [2]map[string]float64
	for i, k := range []kind{release, gatewayKind} {
		found[i] = figuresOf(k, results[0], results[1], results[2], results[3].runs[i][0])
		if err := measured(found[i]); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return judge(b.out, version, found[0], found[1])
}

// measured reports whether each timed step has had a clean run: a figure without one is 0,
// which would be better than anything.
func measured(found map[string]float64) error {
	if found["cpu_20ms"] == 0 || found["cpu_100ms"] == 0 || found["p50_20ms"] == 0 {
		return errNoCleanRun
	}
	return nil
}

// figuresOf returns a build's figures from the steps of a plan; 0 if no run of a step was
// clean.
func figuresOf(k kind, short, long, light result, idle run) map[string]float64 {
	return map[string]float64{
		"cpu_20ms": short.of(k, microsPF), "cpu_100ms": long.of(k, microsPF), "p50_20ms": light.of(k, p50),
		"mallocs_20ms": short.of(k, func(r run) float64 { return r.Mallocs }),
		"idle_kb":      idle.SettledKB,
	}
}

// judge prints each figure beside the release's, and fails if one is worse.
func judge(out io.Writer, version string, old, found map[string]float64) error {
	var worse []error
	say(out, "\nagainst %s\n", version)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range figures {
		was, verdict := old[f.name], "ok"
		if most := was + max(was*f.margin, f.least); found[f.name] > most {
			verdict = fmt.Sprintf("WORSE, at most %.3f", most)
			worse = append(worse, fmt.Errorf("%w: %s", errWorse, f.about))
		}
		say(w, "%s\t%.3f\twas %.3f\t%s\n", f.about, found[f.name], was, verdict)
	}
	return errors.Join(w.Flush(), errors.Join(worse...))
}
