package model

import "slices"

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
	v := g.violation(Reached, "nobody goes on, and it has not ended", worst.first)
	if worst.inner > 0 {
		v.How = "it goes round for ever, although every process goes on"
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
