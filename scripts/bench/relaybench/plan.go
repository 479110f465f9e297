//go:build linux

package main

import (
	"fmt"
	"runtime"
	"time"
)

// cores is how many there are.
func cores() float64 { return float64(runtime.NumCPU()) }

// step is a scenario for some relays, so many times.
type step struct {
	scenario scenario
	kinds    []kind
	rounds   int
}

// fullPlan is what compare does by default, quickPlan what it does in a hurry; largePlan
// has the sizes of the anchors.
func fullPlan() []step {
	all := []kind{direct, splice, nginx, node, gatewayKind, gatewayOther}
	secure := []kind{nginx.overTLS(), node.overTLS(), gatewayKind.overTLS(), gatewayKind, gatewayOther.overTLS()}
	return []step{
		{scenario{name: "200 sessions, 20 ms", sessions: 200, frame: 20 * time.Millisecond, warm: 2 * time.Second, measure: 5 * time.Second}, all, 3},
		{scenario{name: "1000 sessions, 100 ms", sessions: 1000, frame: 100 * time.Millisecond, warm: 2 * time.Second, measure: 5 * time.Second}, []kind{direct, splice, nginx, node, gatewayKind}, 2},
		{scenario{name: "500 sessions, 20 ms", sessions: 500, frame: 20 * time.Millisecond, warm: 2 * time.Second, measure: 5 * time.Second}, []kind{splice, nginx, node, gatewayKind}, 1},
		{scenario{name: "100 sessions, 20 ms, TLS to the provider", sessions: 100, frame: 20 * time.Millisecond, warm: 2 * time.Second, measure: 5 * time.Second}, secure, 2},
		{scenario{name: "2000 idle sessions", sessions: 2000, settle: 8 * time.Second}, append([]kind{nginx, node, gatewayKind, gatewayOther}, secure[:3]...), 1},
	}
}

func quickPlan() []step {
	return []step{
		{scenario{name: "100 sessions, 20 ms", sessions: 100, frame: 20 * time.Millisecond, warm: time.Second, measure: 3 * time.Second}, []kind{direct, splice, nginx, node, gatewayKind}, 1},
		{scenario{name: "500 idle sessions", sessions: 500, settle: 3 * time.Second}, []kind{nginx, node, gatewayKind}, 1},
	}
}

func largePlan() []step {
	plan := fullPlan()
	for i := range plan {
		plan[i].rounds += 2
		plan[i].scenario.measure *= 2
	}
	last := &plan[len(plan)-1]
	last.scenario.name, last.scenario.sessions, last.scenario.settle = "5000 idle sessions", 5000, 20*time.Second
	return plan
}

// result is what a step gave: the runs of each relay, in the order of the step's kinds.
type result struct {
	step step
	runs [][]run
}

// retries is how often a dirty run is repeated before it is left out.
const retries = 2

// carryOut runs a step: the relays take turns, so that what others do on the machine meets
// them all alike.
func (b *bench) carryOut(s step) (result, error) {
	res := result{step: s, runs: make([][]run, len(s.kinds))}
	for range s.rounds {
		for i, k := range s.kinds {
			r, err := b.try(k, s.scenario)
			if err != nil {
				return res, fmt.Errorf("%s, %s: %w", k.name, s.scenario.name, err)
			}
			res.runs[i] = append(res.runs[i], r)
		}
	}
	return res, nil
}

// try measures until a run is clean, or often enough.
func (b *bench) try(k kind, s scenario) (run, error) {
	for attempt := 0; ; attempt++ {
		r, err := b.one(k, s)
		if err != nil {
			return r, err
		}
		if s.frame == 0 {
			return r, nil
		}
		why := r.dirty()
		if why == "" {
			return r, nil
		}
		say(b.out, "  (%s: %s; others took %.0f %% of the machine)\n", k.name, why, 100*r.Others)
		if attempt == retries {
			return r, nil
		}
	}
}
