package adapter

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
)

// The limits of an automaton.
const (
	maxStates  = 4096
	maxInsts   = 20_000 // of all patterns together
	automatics = 3_000_000
)

// automaton accepts the texts that every one of its patterns matches somewhere, which is the
// meaning of "pattern". It is deterministic, and complete except for dead ends.
type automaton struct {
	progs   []*syntax.Prog
	classes []class
	next    [][]int // of a state, by class; -1 if nothing can be accepted any more
	accepts []bool
	work    int
	// words and lines say whether a pattern uses \b or line ends.
	words, lines bool
}

// class is a set of characters that no pattern distinguishes.
type class struct {
	ranges []span
	sign   rune // one of them
}

type span struct{ lo, hi rune }

// state is the state of the patterns after a part of a text.
type state struct {
	before  rune // the kind of the last character: see kindOf
	matched []bool
	at      [][]uint32 // for each pattern, the instructions at which it continues
}

func (s *state) key() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(s.before)))
	for i, pcs := range s.at {
		fmt.Fprintf(&b, "|%t", s.matched[i])
		for _, pc := range pcs {
			b.WriteByte(',')
			b.WriteString(strconv.FormatUint(uint64(pc), 36))
		}
	}
	return b.String()
}

// newAutomaton makes the automaton of patterns in RE2 syntax; nil if one does not compile
// or it would be too large.
func newAutomaton(patterns []string) *automaton {
	a := &automaton{}
	insts := 0
	for _, p := range patterns {
		re, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			return nil
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			return nil
		}
		if insts += len(prog.Inst); insts > maxInsts {
			return nil
		}
		a.progs = append(a.progs, prog)
	}
	a.look()
	a.classify()
	if !a.explore() {
		return nil
	}
	a.prune()
	return a
}

// classify divides all characters into classes.
func (a *automaton) classify() {
	var insts []*syntax.Inst
	seen := map[string]bool{}
	cuts := map[rune]bool{0: true, '\n': true, '\n' + 1: true, ' ': true, 0x7f: true, 0xd800: true, 0xe000: true, unicode.MaxRune + 1: true}
	cut := func(lo, hi rune) { cuts[lo], cuts[hi+1] = true, true }
	for _, s := range []span{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}} {
		cut(s.lo, s.hi)
	}
	for _, prog := range a.progs {
		for i := range prog.Inst {
			inst := &prog.Inst[i]
			if inst.Op != syntax.InstRune && inst.Op != syntax.InstRune1 {
				continue
			}
			key := fmt.Sprint(inst.Arg&uint32(syntax.FoldCase), inst.Rune)
			if seen[key] {
				continue
			}
			seen[key] = true
			insts = append(insts, inst)
			if len(inst.Rune) == 1 {
				for r, first := inst.Rune[0], true; first || r != inst.Rune[0]; r, first = unicode.SimpleFold(r), false {
					cut(r, r)
				}
				continue
			}
			for j := 0; j+1 < len(inst.Rune); j += 2 {
				cut(inst.Rune[j], inst.Rune[j+1])
			}
		}
	}
	edges := make([]rune, 0, len(cuts))
	for r := range cuts {
		edges = append(edges, r)
	}
	slices.Sort(edges)
	byKind := map[string]int{}
	for i := 0; i+1 < len(edges) && edges[i] <= unicode.MaxRune; i++ {
		r := edges[i]
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		kind := []byte{byte(a.kindOf(r))}
		for _, inst := range insts {
			if inst.MatchRune(r) {
				kind = append(kind, '1')
			} else {
				kind = append(kind, '0')
			}
		}
		at, has := byKind[string(kind)]
		if !has {
			at = len(a.classes)
			byKind[string(kind)] = at
			a.classes = append(a.classes, class{sign: r})
		}
		a.classes[at].ranges = append(a.classes[at].ranges, span{r, edges[i+1] - 1})
	}
}

// look finds out which boundaries the patterns use.
func (a *automaton) look() {
	for _, prog := range a.progs {
		for _, inst := range prog.Inst {
			if inst.Op == syntax.InstEmptyWidth {
				op := syntax.EmptyOp(inst.Arg)
				a.words = a.words || op&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
				a.lines = a.lines || op&(syntax.EmptyBeginLine|syntax.EmptyEndLine) != 0
			}
		}
	}
}

// kindOf returns a character that stands for all that the patterns' boundaries treat like r.
func (a *automaton) kindOf(r rune) rune {
	switch {
	case a.lines && r == '\n':
		return '\n'
	case a.words && syntax.IsWordChar(r):
		return 'w'
	default:
		return ' '
	}
}

// runes returns up to n characters of the class, readable ones first.
func (c *class) runes(n int) []rune {
	var all []rune
	const good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./: "
	for _, r := range good {
		if len(all) < n && c.has(r) {
			all = append(all, r)
		}
	}
	for pass := range 2 { // visible characters, then the others
		for _, s := range c.ranges {
			for r := s.lo; r <= s.hi && len(all) < n; r++ {
				if unicode.IsPrint(r) == (pass == 0) && !strings.ContainsRune(good, r) {
					all = append(all, r)
				}
				if r-s.lo > 4096 {
					break
				}
			}
		}
	}
	return all
}

func (c *class) has(r rune) bool {
	i := sort.Search(len(c.ranges), func(i int) bool { return c.ranges[i].hi >= r })
	return i < len(c.ranges) && c.ranges[i].lo <= r
}

// explore finds every state; false if there are too many.
func (a *automaton) explore() bool {
	begin := &state{before: -1, matched: make([]bool, len(a.progs)), at: make([][]uint32, len(a.progs))}
	states, index := []*state{begin}, map[string]int{begin.key(): 0}
	for i := 0; i < len(states); i++ {
		row := make([]int, len(a.classes))
		for j := range a.classes {
			s := a.step(states[i], a.classes[j].sign)
			key := s.key()
			to, has := index[key]
			if !has {
				if to = len(states); to == maxStates || a.work > automatics {
					return false
				}
				index[key] = to
				states = append(states, s)
			}
			row[j] = to
		}
		a.next = append(a.next, row)
		a.accepts = append(a.accepts, a.accepted(states[i]))
	}
	return true
}

// step returns the state after one more character.
func (a *automaton) step(s *state, r rune) *state {
	to := &state{before: a.kindOf(r), matched: slices.Clone(s.matched), at: make([][]uint32, len(a.progs))}
	for i, prog := range a.progs {
		if to.matched[i] {
			continue
		}
		here, matched := a.closure(prog, s.at[i], syntax.EmptyOpContext(s.before, r))
		if matched {
			to.matched[i] = true
			continue
		}
		for _, pc := range here {
			if inst := &prog.Inst[pc]; isRune(inst.Op) && inst.MatchRune(r) {
				to.at[i] = append(to.at[i], inst.Out)
			}
		}
		slices.Sort(to.at[i])
		to.at[i] = slices.Compact(to.at[i])
	}
	return to
}

func isRune(op syntax.InstOp) bool {
	return op == syntax.InstRune || op == syntax.InstRune1 || op == syntax.InstRuneAny || op == syntax.InstRuneAnyNotNL
}

// accepted reports whether the text may end here.
func (a *automaton) accepted(s *state) bool {
	for i, prog := range a.progs {
		if s.matched[i] {
			continue
		}
		if _, matched := a.closure(prog, s.at[i], syntax.EmptyOpContext(s.before, -1)); !matched {
			return false
		}
	}
	return true
}

// closure follows instructions that consume no character, from pcs and from the pattern's start.
func (a *automaton) closure(prog *syntax.Prog, pcs []uint32, context syntax.EmptyOp) (here []uint32, matched bool) {
	seen := map[uint32]bool{}
	stack := append(slices.Clone(pcs), uint32(prog.Start))
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		a.work++
		switch inst := &prog.Inst[pc]; inst.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^context == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstFail:
		default:
			here = append(here, pc)
		}
	}
	return here, false
}

// prune removes the transitions to states from which nothing is ever accepted.
func (a *automaton) prune() {
	from := make([][]int, len(a.next))
	for s, row := range a.next {
		for _, to := range row {
			from[to] = append(from[to], s)
		}
	}
	live := make([]bool, len(a.next))
	var stack []int
	for s, yes := range a.accepts {
		if yes {
			live[s], stack = true, append(stack, s)
		}
	}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, f := range from[s] {
			if !live[f] {
				live[f], stack = true, append(stack, f)
			}
		}
	}
	for _, row := range a.next {
		for j, to := range row {
			if !live[to] {
				row[j] = -1
			}
		}
	}
}

// prefix is the beginning of a text, as a linked list from its end.
type prefix struct {
	before *prefix
	r      rune
}

func (p *prefix) text() string {
	var all []rune
	for ; p.before != nil; p = p.before {
		all = append(all, p.r)
	}
	slices.Reverse(all)
	return string(all)
}

// extend adds to list each prefix followed by each character, until the list has most entries.
func extend(list, prefixes []*prefix, runes []rune, most int) []*prefix {
	for _, p := range prefixes {
		for _, r := range runes {
			if len(list) >= most {
				return list
			}
			list = append(list, &prefix{p, r})
		}
	}
	return list
}

// ending returns the texts of a level that end in an accepting state.
func (a *automaton) ending(states []int, level map[int][]*prefix) []*prefix {
	var all []*prefix
	for _, s := range states {
		if a.accepts[s] {
			all = append(all, level[s]...)
		}
	}
	return all
}

// texts returns up to want accepted texts of least to most characters, shorter ones first
// (most below 0 means no bound). complete says that there are no others, work is its cost.
func (a *automaton) texts(least, most, want int) (found []string, complete bool, work int) {
	level := map[int][]*prefix{0: {{}}}
	runes := make([][]rune, len(a.classes))
	for i := range a.classes {
		runes[i] = a.classes[i].runes(want)
	}
	for length := 0; len(level) > 0; length++ {
		states := make([]int, 0, len(level))
		for s := range level {
			states = append(states, s)
		}
		slices.Sort(states)
		if length >= least {
			for _, p := range a.ending(states, level) {
				if len(found) == want {
					return found, false, work
				}
				found = append(found, p.text())
			}
		}
		if length == most {
			break
		}
		after := map[int][]*prefix{}
		for _, s := range states {
			for j, to := range a.next[s] {
				if to < 0 {
					continue
				}
				if work += 1 + len(level[s]); work > automatics {
					return found, false, work
				}
				after[to] = extend(after[to], level[s], runes[j], want+1) // one more shows whether there are others
			}
		}
		level = after
	}
	return found, true, work
}
