package testutil

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Protocol is a small protocol, whose reachable states [Keeps] and [Breaks] explore: they check its promises in
// each, whether an end is always reachable, and whether it is reached if every process continues. S is the whole state, a
// value without pointers. Its functions must be pure: the same state gives the same steps in the same order.
//
// The models of the gateway's protocols are tests next to the code. They call the gateway's own decisions, so that there
// is no second description to maintain. docs/models.md describes each model and its output.
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

const maxProcesses = 64

// graph is the explored part. States are numbered in breadth-first order, so a lower index is no farther from the start.
type graph[S comparable] struct {
	p      Protocol[S]
	index  map[S]int32
	states []S
	from   []int32 // each state's predecessor in the search; -1 for the start
	depth  []int32

	// first is the index of each state's first step in steps, with one more at the end.
	first []int32
	steps []step
	names []string // of the processes, without the world
}

// step is an edge. by is its process's number, or world.
type step struct {
	to int32
	by int8
}

const world = -1

// Explore visits the states of p breadth-first until a broken promise, or more than most states, which is an error.
func Explore[S comparable](p Protocol[S], most int) (Report, error) {
	g := &graph[S]{p: p, index: map[S]int32{}}
	g.add(p.Start, -1)
	for i := 0; i < len(g.states); i++ {
		if v := g.judge(int32(i)); v != nil {
			return g.report(v), nil
		}
		g.expand(int32(i))
		if len(g.states) > most {
			return g.report(nil), fmt.Errorf("more than %d states", most)
		}
	}
	g.first = append(g.first, int32(len(g.steps)))
	if v := g.deadEnd(); v != nil {
		return g.report(v), nil
	}
	return g.report(g.endless()), nil
}

// add returns the index of a successor of from.
func (g *graph[S]) add(s S, from int32) int32 {
	if i, known := g.index[s]; known {
		return i
	}
	i := int32(len(g.states))
	g.index[s] = i
	g.states = append(g.states, s)
	g.from = append(g.from, from)
	depth := int32(0)
	if from >= 0 {
		depth = g.depth[from] + 1
	}
	g.depth = append(g.depth, depth)
	return i
}

func (g *graph[S]) expand(i int32) {
	g.first = append(g.first, int32(len(g.steps)))
	g.p.Steps(g.states[i], func(by, _ string, to S) {
		g.steps = append(g.steps, step{to: g.add(to, i), by: g.process(by)})
	})
}

func (g *graph[S]) process(name string) int8 {
	if name == "" {
		return world
	}
	i := slices.Index(g.names, name)
	if i < 0 {
		i = len(g.names)
		if g.names = append(g.names, name); len(g.names) > maxProcesses {
			panic(fmt.Sprintf("model: more than %d processes, the last is %q", maxProcesses, name))
		}
	}
	return int8(i)
}

func (g *graph[S]) report(v *Violation) Report {
	return Report{States: len(g.states), Steps: len(g.steps), Depth: int(g.depth[len(g.depth)-1]), Violation: v}
}

func (g *graph[S]) judge(i int32) *Violation {
	for _, promise := range g.p.Promises {
		if how := promise.Broken(g.states[i]); how != "" {
			return g.violation(promise.Name, how, i)
		}
	}
	return nil
}

func (g *graph[S]) violation(promise, how string, at int32) *Violation {
	v := &Violation{Promise: promise, How: how, Trace: g.trace(at)}
	if g.p.Show != nil {
		v.Last = g.p.Show(g.states[at])
	}
	return v
}

func (g *graph[S]) trace(at int32) []string {
	var lines []string
	for ; g.from[at] >= 0; at = g.from[at] {
		lines = append(lines, g.tell(g.from[at], at))
	}
	slices.Reverse(lines)
	return lines
}

func (g *graph[S]) tell(from, to int32) (line string) {
	target := g.states[to]
	g.p.Steps(g.states[from], func(by, does string, s S) {
		if s != target || line != "" {
			return
		}
		if by == "" {
			by = "the world"
		}
		line = by + ": " + does
	})
	return line
}

func (g *graph[S]) edges(i int32) []step { return g.steps[g.first[i]:g.first[i+1]] }

// deadEnd finds the first state from which no end is reachable.
func (g *graph[S]) deadEnd() *Violation {
	// The predecessors of each state, in one slice like the steps.
	first := make([]int32, len(g.states)+1)
	for _, s := range g.steps {
		first[s.to+1]++
	}
	for i := range g.states {
		first[i+1] += first[i]
	}
	leads, next := make([]int32, len(g.steps)), slices.Clone(first)
	for i := range g.states {
		for _, s := range g.edges(int32(i)) {
			leads[next[s.to]] = int32(i)
			next[s.to]++
		}
	}
	ends, todo := make([]bool, len(g.states)), []int32{}
	for i, s := range g.states {
		if g.p.End(s) {
			ends[i] = true
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, before := range leads[first[i]:first[i+1]] {
			if !ends[before] {
				ends[before] = true
				todo = append(todo, before)
			}
		}
	}
	i := slices.Index(ends, false)
	if i < 0 {
		return nil
	}
	how := "whatever happens from here on, it does not end"
	if len(g.edges(int32(i))) == 0 {
		how = "nothing can happen any more, and it has not ended"
	}
	return g.violation(Reachable, how, int32(i))
}

// endless finds an infinite run without an end that is weakly fair: every process that can take a step takes one
// eventually. Such a run stays, from some step on, within one strongly connected set of states without an end and visits
// all of them repeatedly; it is fair if each process takes a step within the set or is blocked in one of its states.
func (g *graph[S]) endless() *Violation {
	parts := g.components()
	all := uint64(1)<<len(g.names) - 1
	var worst *component
	for i := range parts {
		c := &parts[i]
		if (c.moves|c.rests)&all != all {
			continue
		}
		if worst == nil || c.first < worst.first {
			worst = c
		}
	}
	if worst == nil {
		return nil
	}
	v := g.violation(Reached, "no process can continue, and the run has not ended", worst.first)
	if worst.inner > 0 {
		v.How = "it loops forever, although every process continues"
		v.Loop = g.loop(*worst)
	}
	return v
}

type component struct {
	states       []int32
	first        int32  // closest to the start
	inner        int    // steps within the set
	moves, rests uint64 // moves are the processes with a step within the set, rests those blocked in one of its states
}

// components returns the strongly connected sets of states without an end, by Tarjan's algorithm ("Depth-first search
// and linear graph algorithms", 1972) with an explicit stack.
func (g *graph[S]) components() []component {
	n := len(g.states)
	order, low, part := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range n {
		order[i], part[i] = -1, -1
	}
	var parts []component
	var open, path []int32
	next := make([]int32, n) // each state's next step to examine
	counted := int32(0)
	for root := range int32(n) {
		if order[root] >= 0 || g.p.End(g.states[root]) {
			continue
		}
		path = append(path, root)
		for len(path) > 0 {
			i := path[len(path)-1]
			if order[i] < 0 {
				order[i], low[i] = counted, counted
				counted++
				open = append(open, i)
			}
			if edges := g.edges(i); int(next[i]) < len(edges) {
				to := edges[next[i]].to
				next[i]++
				switch {
				case g.p.End(g.states[to]):
				case order[to] < 0:
					path = append(path, to)
				case part[to] < 0: // still open
					low[i] = min(low[i], order[to])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				parent := path[len(path)-1]
				low[parent] = min(low[parent], low[i])
			}
			if low[i] == order[i] {
				from := slices.Index(open, i)
				states := slices.Clone(open[from:])
				open = open[:from]
				for _, s := range states {
					part[s] = int32(len(parts))
				}
				parts = append(parts, component{states: states, first: slices.Min(states)})
			}
		}
	}
	for i := range parts {
		g.measure(&parts[i], part)
	}
	return parts
}

func (g *graph[S]) measure(c *component, part []int32) {
	for _, i := range c.states {
		var can uint64
		for _, s := range g.edges(i) {
			var who uint64
			if s.by != world {
				who = 1 << s.by
			}
			can |= who
			if part[s.to] == part[i] {
				c.inner++
				c.moves |= who
			}
		}
		c.rests |= ^can
	}
}

// loop describes a shortest cycle through a component's first state.
func (g *graph[S]) loop(c component) []string {
	from := map[int32]int32{}
	within := map[int32]bool{}
	for _, i := range c.states {
		within[i] = true
	}
	for todo := []int32{c.first}; len(todo) > 0; todo = todo[1:] {
		i := todo[0]
		for _, s := range g.edges(i) {
			if s.to == c.first {
				lines := []string{g.tell(i, c.first)}
				for at := i; at != c.first; at = from[at] {
					lines = append(lines, g.tell(from[at], at))
				}
				slices.Reverse(lines)
				return lines
			}
			if _, seen := from[s.to]; !seen && within[s.to] {
				from[s.to] = i
				todo = append(todo, s.to)
			}
		}
	}
	return nil
}
