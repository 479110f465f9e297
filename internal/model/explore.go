package model

import (
	"fmt"
	"slices"
)

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
			return g.report(nil), fmt.Errorf("model: more than %d states", most)
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
