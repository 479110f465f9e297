package model

import "fmt"

// Protocol is the protocol to explore. S is the whole state, as a value without pointers. Its
// functions must be pure: the same state gives the same steps in the same order.
type Protocol[S comparable] struct {
	// Start is the first state.
	Start S
	// Steps calls can for each thing that can happen next in a state, in any order.
	Steps func(s S, can Can[S])
	// Promises hold in every state.
	Promises []Promise[S]
	// End says whether everything that was begun is over in a state.
	End func(s S) bool
	// Show describes a state in one line, for the last state of a trace. It may be nil.
	Show func(s S) string
}

// Can tells the explorer of a step that leads to the state to. by names the process that takes
// it: a process continues as long as it can. The world, whose name is empty, may take its steps
// or never do so. does says in words what happens.
type Can[S comparable] func(by, does string, to S)

// Promise is something that holds in every state.
type Promise[S comparable] struct {
	Name string
	// Broken says how the state breaks it; empty if it holds.
	Broken func(s S) string
}

// The promises that every protocol makes.
const (
	// Reachable: from every state an end can be reached.
	Reachable = "an end can always be reached"
	// Reached: an end is reached if every process that can take a step does so eventually.
	Reached = "an end is always reached"
)

// Report is what an exploration found.
type Report struct {
	// States and Steps are their numbers; Depth is how many steps the farthest state is from
	// the start.
	States, Steps, Depth int
	// Violation is nil if every promise holds.
	Violation *Violation
}

// String returns one line of figures, for a log.
func (r Report) String() string {
	return fmt.Sprintf("%d states, %d steps, the farthest state is %d steps away", r.States, r.Steps, r.Depth)
}

// Violation is a broken promise, and the shortest way to it.
type Violation struct {
	// Promise is the name of the promise; How says what is wrong in the last state.
	Promise, How string
	// Trace is what happens from the start on, a line for each step.
	Trace []string
	// Loop is what happens from then on, again and again; empty if nothing does.
	Loop []string
	// Last describes the last state of Trace; empty if the protocol has no Show.
	Last string
}

// String describes the violation in lines.
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
