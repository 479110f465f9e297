//go:build linux

package main

import (
	"fmt"
	"runtime"
	"time"
)

// cores is the number of cores.
func cores() float64 { return float64(runtime.NumCPU()) }

// step is a scenario for some relays, with a number of runs.
type step struct {
	scenario scenario
	kinds    []kind
	rounds   int
}

// talking returns a scenario with sessions that each send a frame at an interval, and get one
// back.
func talking(sessions int, frame, warm, measure time.Duration) scenario {
	return scenario{
		name:     fmt.Sprintf("%d sessions, %d ms each way", sessions, frame.Milliseconds()),
		sessions: sessions, frame: frame, warm: warm, measure: measure,
	}
}

// storeRests is how long idle sessions wait to be measured: for ten seconds after its last write the embedded
// store keeps a buffer of up to 4 MiB for each stream, which is no session's.
const storeRests = 13 * time.Second

// idle returns a scenario with sessions that send nothing.
func idle(sessions int, settle time.Duration) scenario {
	return scenario{name: fmt.Sprintf("%d idle sessions", sessions), sessions: sessions, settle: settle}
}

// also adds a scenario's special conditions to its name.
func (s scenario) also(what string) scenario {
	s.name += ", " + what
	return s
}

// fullPlan is compare's default, quickPlan its short form; largePlan has the sizes of the
// reference figures.
func fullPlan() []step {
	const warm, measure = 2 * time.Second, 5 * time.Second
	const short, long = 20 * time.Millisecond, 100 * time.Millisecond
	all := []kind{direct, nginx, gatewayKind, gatewayOther}
	apart := talking(200, short, warm, measure).also("the relay on a core of its own")
	apart.apart = true
	secure := []kind{nginx.overTLS(), gatewayKind.overTLS(), gatewayOther.overTLS(), gatewayKind}
	return append([]step{
		{talking(200, short, warm, measure), all, 3},
		{apart, all, 3},
		{talking(1000, long, warm, measure), []kind{direct, nginx, gatewayKind}, 2},
		{talking(500, short, warm, measure), []kind{nginx, gatewayKind}, 1},
		{talking(100, short, warm, measure).also("TLS to the provider"), secure, 2},
		{idle(2000, storeRests), append([]kind{nginx, gatewayOther}, secure...), 1},
	}, tlsPlan()...)
}

// tlsPlan compares TLS to the clients with none.
func tlsPlan() []step {
	front := []kind{nginx.withTLS(), gatewayKind.withTLS(), gatewayOther.withTLS(), nginx, gatewayKind, gatewayOther}
	return []step{
		{talking(100, 20*time.Millisecond, 2*time.Second, 5*time.Second).also("TLS to the clients"), front, 5},
		{idle(2000, storeRests).also("TLS to the clients"), front, 1},
	}
}

func quickPlan() []step {
	return []step{
		{talking(100, 20*time.Millisecond, time.Second, 3*time.Second), []kind{direct, nginx, gatewayKind}, 1},
		{idle(500, 3*time.Second), []kind{nginx, gatewayKind}, 1},
	}
}

func largePlan() []step {
	plan := fullPlan()
	for i := range plan {
		plan[i].rounds += 2
		plan[i].scenario.measure *= 2
		if plan[i].scenario.frame == 0 {
			plan[i].scenario = idle(5000, 20*time.Second)
		}
	}
	return plan
}

// result is the result of a step: the runs of each relay, in the order of the step's kinds.
type result struct {
	step step
	runs [][]run
}

// retries is how often a dirty run is repeated before it is left out.
const retries = 2

// carryOut runs a step: the relays take turns, so that other programs on the machine affect
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

// try measures until a run is clean, or the retries are used up.
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
