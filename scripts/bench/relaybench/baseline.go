//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// baseline holds the figures of a release. Times are multiples of the time of the calibration
// (splice) in the same run, so that they can be compared with those of another machine, or of
// this one on another day.
type baseline struct {
	Version string             `json:"version"`
	Figures map[string]float64 `json:"figures"`
}

// figure is a figure that is compared with the baseline.
type figure struct {
	name   string
	about  string
	margin float64 // how much worse it may be, as a fraction of the baseline
	least  float64 // a difference that is never a finding
}

// figures are what is compared. The margins are the differences of the same program from run
// to run on a busy machine with two cores.
var figures = []figure{
	{"cpu_20ms", "CPU per frame, 200 sessions, 20 ms, in multiples of the calibration", 0.15, 0.05},
	{"cpu_100ms", "CPU per frame, 500 sessions, 100 ms, in multiples of the calibration", 0.15, 0.05},
	{"p50_20ms", "round trip p50, 100 sessions, 20 ms, in multiples of the calibration", 0.20, 0.10},
	{"mallocs_20ms", "allocations per frame", 0, 0.02},
	{"idle_kb", "memory per idle session, KB, settled", 0.10, 0.5},
}

// baselinePlan returns the plan that measures the figures of some builds of the gateway.
func baselinePlan(builds []kind) []step {
	kinds := append([]kind{splice}, builds...)
	return []step{
		{talking(200, 20*time.Millisecond, 2*time.Second, 6*time.Second), kinds, 5},
		{talking(500, 100*time.Millisecond, 2*time.Second, 6*time.Second), kinds, 5},
		// With 200 sessions a slow machine is full, and a round trip is mostly waiting.
		{talking(100, 20*time.Millisecond, 2*time.Second, 6*time.Second), kinds, 5},
		{idle(2000, 5*time.Second), builds, 1},
	}
}

var (
	errNoCleanRun = errors.New("no run was clean: the machine is too busy, try again when it is not")
	errWorse      = errors.New("worse than the baseline")
)

// measureFigures runs the plan and returns the figures of each build.
func (b *bench) measureFigures(builds ...kind) ([]map[string]float64, error) {
	var results []result
	for _, s := range baselinePlan(builds) {
		res, err := b.carryOut(s)
		if err != nil {
			return nil, err
		}
		res.print(b.out)
		results = append(results, res)
	}
	found := make([]map[string]float64, len(builds))
	for i, k := range builds {
		found[i] = figuresOf(k, results[0], results[1], results[2], results[3].runs[i][0])
		if err := measured(found[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return found, nil
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
	over := func(res result, value func(run) float64) float64 {
		if res.of(splice, value) == 0 {
			return 0
		}
		return res.of(k, value) / res.of(splice, value)
	}
	return map[string]float64{
		"cpu_20ms": over(short, microsPF), "cpu_100ms": over(long, microsPF), "p50_20ms": over(light, p50),
		"mallocs_20ms": short.of(k, func(r run) float64 { return r.Mallocs }),
		"idle_kb":      idle.SettledKB,
	}
}

// writeBaseline measures the figures and writes them to file.
func (b *bench) writeBaseline(file, version string) error {
	found, err := b.measureFigures(gatewayKind)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(baseline{version, found[0]}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// compareBaseline measures and fails if a figure is worse than the one in file.
func (b *bench) compareBaseline(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("there is no baseline: %w; make one with make bench-baseline", err)
	}
	var old baseline
	if err := json.Unmarshal(text, &old); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	found, err := b.measureFigures(gatewayKind)
	if err != nil {
		return err
	}
	return judge(b.out, old, found[0])
}

// compareRelease measures the program of a release beside this one, in turns, and fails
// if this one is worse. A round trip in multiples of the calibration depends on how expensive
// it is to wake a thread, which differs from machine to machine; two programs on one machine
// have that in common.
func (b *bench) compareRelease(program, version string) error {
	found, err := b.measureFigures(gatewayKind.build(program), gatewayKind)
	if err != nil {
		return err
	}
	return judge(b.out, baseline{version + ", measured in the same run", found[0]}, found[1])
}

// judge prints each figure beside the baseline's, and fails if one is worse.
func judge(out io.Writer, old baseline, found map[string]float64) error {
	var worse []error
	say(out, "\nagainst %s\n", old.Version)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range figures {
		was, known := old.Figures[f.name]
		verdict := "ok"
		switch most := was + max(was*f.margin, f.least); {
		case !known:
			verdict = "new"
		case found[f.name] > most:
			verdict = fmt.Sprintf("WORSE, at most %.3f", most)
			worse = append(worse, fmt.Errorf("%w: %s", errWorse, f.about))
		}
		say(w, "%s\t%.3f\twas %.3f\t%s\n", f.about, found[f.name], was, verdict)
	}
	return errors.Join(w.Flush(), errors.Join(worse...))
}
