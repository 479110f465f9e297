// Package model explores every reachable state of a small protocol and checks its promises in each, whether an end is
// always reachable, and whether it is reached if every process continues. It reports a broken promise with the shortest
// trace.
//
// The models of the gateway's protocols are tests next to the code. They call the gateway's own decisions, so that there
// is no second description to maintain. docs/models.md describes each model and its output.
package model

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

// Protocol is a protocol to explore. S is the whole state, a value without pointers. Its functions must be pure: the
// same state gives the same steps in the same order.
type Protocol[S comparable] struct {
	Start    S                     // the first state
	Steps    func(s S, can Can[S]) // calls can for each possible next step of a state, in any order
	Promises []Promise[S]          // must hold in every state
	End      func(s S) bool        // reports whether everything started has ended
	Show     func(s S) string      // describes a trace's last state in one line. May be nil.
}

// Can reports a step to state to. by is its process, which continues as long as it can. The world, with the empty name,
// may take its steps or not. does describes the step.
type Can[S comparable] func(by, does string, to S)

// Promise must hold in every state.
type Promise[S comparable] struct {
	Name   string
	Broken func(s S) string // describes how a state breaks it, or returns ""
}

// The promises of every protocol.
const (
	Reachable = "an end can always be reached" // an end is reachable from every state
	// Reached: an end is reached if every process that can take a step does so eventually.
	Reached = "an end is always reached"
)

// Report is the result of an exploration.
type Report struct {
	States, Steps, Depth int        // States and Steps are totals; Depth is the largest distance from the start in steps
	Violation            *Violation // nil if every promise holds
}

// String returns the statistics on one line.
func (r Report) String() string {
	return fmt.Sprintf("%d states, %d steps, the farthest state is %d steps away", r.States, r.Steps, r.Depth)
}

// Violation is a broken promise with the shortest trace.
type Violation struct {
	Promise, How string   // Promise is the promise's name; How describes the problem in the last state
	Trace        []string // has a line for each step from the start
	Loop         []string // has the steps that then repeat forever; may be empty
	Last         string   // describes the last state; empty without Protocol.Show
}

func (v *Violation) String() string {
	text := fmt.Sprintf("the promise %q is broken: %s\n", v.Promise, v.How)
	for i, step := range v.Trace {
		text += fmt.Sprintf("%4d  %s\n", i+1, step)
	}
	if len(v.Loop) > 0 {
		text += "      and then for ever:\n"
	}
	for i, step := range v.Loop {
		text += fmt.Sprintf("%4d  %s\n", len(v.Trace)+i+1, step)
	}
	if v.Last != "" {
		text += "      the state then: " + v.Last + "\n"
	}
	return text
}

var deep = flag.Bool("model.deep", false, "explore the models at their full bounds")

const maxStates = 4_000_000

// Deep reports whether to explore models at their full bounds.
func Deep() bool { return *deep }

// Keeps fails the test with a trace if p breaks a promise, and logs the statistics.
func Keeps[S comparable](t *testing.T, p Protocol[S]) {
	t.Helper()
	if v := explore(t, p).Violation; v != nil {
		t.Error(v)
	}
}

// Breaks fails the test unless p, a protocol with a known fault, breaks the named promise; it returns the violation.
func Breaks[S comparable](t *testing.T, p Protocol[S], promise string) *Violation {
	t.Helper()
	v := explore(t, p).Violation
	switch {
	case v == nil:
		t.Fatalf("no promise is broken; %q should be", promise)
	case v.Promise != promise:
		t.Fatalf("%q should be broken, but\n%v", promise, v)
	default:
		t.Log(v)
	}
	return v
}

func explore[S comparable](t *testing.T, p Protocol[S]) Report {
	t.Helper()
	began := time.Now()
	r, err := Explore(p, maxStates)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, in %v", r, time.Since(began).Round(time.Millisecond))
	return r
}
