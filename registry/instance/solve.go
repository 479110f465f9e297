package instance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"voicegw/registry/jsontype"
)

// The limits of a search.
const (
	maxBranches = 64
	maxDepth    = 70
	maxSteps    = 50_000
	// maxWork bounds all work for one schema: characters of values that are tried, and steps
	// of automata.
	maxWork = 20_000_000
	// spare is how many more values are tried than are wanted, since some are refused by
	// keywords that the search ignores.
	spare = 8
	// maxArgs is how long the arguments of a call are at most, in bytes (registry.MaxArgsBytes).
	maxArgs = 64 << 10
	// maxWanted is how many different values a search wants at most.
	maxWanted = 2000
)

// answer describes the values that several schemas all accept.
type answer struct {
	values   []any  // valid ones, without repeats
	complete bool   // there are no others
	why      string // why no value fits, if complete and there are no values
}

// none reports that there is no value.
func (a answer) none() bool { return a.complete && len(a.values) == 0 }

// solver searches for values.
type solver struct {
	doc   *document
	known map[string]answer
	open  map[string]bool // the question that is being answered
	steps int             // for the search at one place
	work  int             // for all searches
	place string          // the schema that the message is about
}

// key names a set of schemas.
func key(conj []*node) string {
	names := make([]string, len(conj))
	for i, n := range conj {
		names[i] = strconv.Quote(n.at + "|" + n.must + "|" + strconv.Itoa(int(n.only)))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// solve searches for up to want values that every schema of conj accepts.
func (s *solver) solve(conj []*node, want, depth int) answer {
	want = min(want, maxWanted)
	k := key(conj) + "#" + strconv.Itoa(want)
	if a, has := s.known[k]; has {
		return a
	}
	s.steps++
	if s.open[k] || depth > maxDepth || s.steps > maxSteps || s.work > maxWork {
		return answer{}
	}
	s.open[k] = true
	a := s.find(conj, want, depth)
	delete(s.open, k)
	s.known[k] = a
	return a
}

// finding collects the values of one search.
type finding struct {
	s      *solver
	conj   []*node
	want   int
	values []any
	seen   map[string]bool
	why    []string
	// missed records that a value could not be checked against the schema.
	missed bool
}

// try keeps v if it is valid.
func (f *finding) try(v any) {
	text := canonical(v)
	if f.s.work += 100 + len(text); f.s.work > maxWork {
		f.missed = true
		return
	}
	if f.seen[text] || len(text) > maxArgs {
		return
	}
	f.seen[text] = true
	for _, n := range f.conj {
		switch valid, known, why := f.s.doc.accepts(n, v); {
		case !known:
			f.missed = true
			return
		case !valid:
			f.because("%s is refused by %s", clip(text, 60), why)
			return
		}
	}
	f.values = append(f.values, v)
}

func (f *finding) because(format string, args ...any) {
	if why := fmt.Sprintf(format, args...); len(f.why) < 3 && !slices.Contains(f.why, why) {
		f.why = append(f.why, why)
	}
}

func (f *finding) enough() bool { return len(f.values) >= f.want }

func (s *solver) find(conj []*node, want, depth int) answer {
	f := &finding{s: s, conj: conj, want: want, seen: map[string]bool{}}
	branches, complete := s.branches(conj)
	for _, parts := range branches {
		for _, n := range parts {
			if v, has := n.doc["default"]; has {
				f.try(v)
			}
			for _, v := range n.list("examples") {
				f.try(v)
			}
		}
	}
	for _, parts := range branches {
		if f.enough() {
			break
		}
		complete = s.branch(f, parts, depth) && complete
	}
	if len(f.values) > want {
		f.values, complete = f.values[:want], false
	} else if f.enough() {
		complete = false // perhaps not all branches were searched
	}
	return answer{f.values, complete && !f.missed, strings.Join(f.why, "; ")}
}

// branches returns sets of schemas; a value must satisfy all schemas of one of the sets:
// references and allOf are followed, and one part is chosen of each anyOf, oneOf and if.
// complete says that no set is missing.
func (s *solver) branches(conj []*node) (all [][]*node, complete bool) {
	complete = true
	var expand func(parts, queue []*node, choices [][]*node)
	expand = func(parts, queue []*node, choices [][]*node) {
		if len(all) >= maxBranches {
			complete = false
			return
		}
		parts, choices = slices.Clone(parts), slices.Clone(choices)
		for len(queue) > 0 {
			n := queue[0]
			queue = queue[1:]
			if slices.Contains(parts, n) {
				continue
			}
			parts = append(parts, n)
			if to := s.doc.referred(n); to != nil {
				queue = append(queue, to)
			}
			queue = append(queue, s.doc.children(n, "allOf")...)
			for _, keyword := range []string{"anyOf", "oneOf"} {
				if list := s.doc.children(n, keyword); len(list) > 0 {
					choices = append(choices, list)
				}
			}
			if yes, then, otherwise := s.doc.child(n, "if"), s.doc.child(n, "then"), s.doc.child(n, "else"); yes != nil && (then != nil || otherwise != nil) {
				choices = append(choices, []*node{s.both(yes, then), s.both(otherwise)})
			}
		}
		if len(choices) == 0 {
			all = append(all, parts)
			return
		}
		for _, choice := range choices[0] {
			expand(parts, []*node{choice}, choices[1:])
		}
	}
	expand(nil, conj, nil)
	return all, complete
}

// both is a made-up schema that consists of references to others; nil ones are ignored.
func (s *solver) both(parts ...*node) *node {
	var list []any
	at := "all"
	for _, n := range parts {
		if n != nil {
			list = append(list, n.at)
			at += " " + strconv.Quote(n.at)
		}
	}
	if made, has := s.doc.nodes[at]; has {
		return made
	}
	made := &node{at: at, doc: map[string]any{}}
	if len(list) > 0 {
		refs := make([]any, len(list))
		for i, one := range list {
			text, _ := one.(string)
			refs[i] = map[string]any{"$ref": "#" + text}
			s.doc.nodes[join(join(at, "allOf"), strconv.Itoa(i))] = &node{at: join(join(at, "allOf"), strconv.Itoa(i)), doc: map[string]any{"$ref": "#" + escapePercent(text)}}
		}
		made.doc["allOf"] = refs
	}
	s.doc.nodes[at] = made
	return made
}

func escapePercent(s string) string { return strings.ReplaceAll(s, "%", "%25") }

// branch searches for values that every part accepts. It returns true if there are no others.
func (s *solver) branch(f *finding, parts []*node, depth int) (complete bool) {
	var listed []any
	hasList := false
	types := jsontype.Set(jsontype.Any)
	var typed []string
	for _, n := range parts {
		if isFalse(n) {
			f.because("the schema false accepts nothing")
			return true
		}
		if list, ok := n.doc["enum"].([]any); ok && (!hasList || len(list) < len(listed)) {
			listed, hasList = list, true
		}
		if v, has := n.doc["const"]; has {
			listed, hasList = []any{v}, true
		}
		if n.only != 0 {
			types &= n.only
		}
		if t, has := typesOf(n); has {
			types &= t
			typed = append(typed, n.where("type", s.place)+" "+t.String())
		}
	}
	if hasList {
		for _, v := range listed {
			f.try(v)
		}
		if len(listed) == 0 {
			f.because("the enum is empty")
		}
		return true
	}
	if types == 0 {
		f.because("%s exclude each other", strings.Join(typed, " and "))
		return true
	}
	complete = true
	for _, one := range []struct {
		types jsontype.Set
		look  func(*finding, []*node, jsontype.Set, int) bool
	}{
		{jsontype.String, s.texts}, {jsontype.Integer | jsontype.Fraction, s.numbers}, {jsontype.Boolean, s.booleans},
		{jsontype.Object, s.objects}, {jsontype.Array, s.arrays}, {jsontype.Null, s.null},
	} {
		if types&one.types == 0 {
			continue
		}
		if f.enough() {
			return false
		}
		complete = one.look(f, parts, types, depth) && complete
	}
	return complete
}

func (s *solver) null(f *finding, _ []*node, _ jsontype.Set, _ int) bool {
	f.try(nil)
	return true
}

func (s *solver) booleans(f *finding, _ []*node, _ jsontype.Set, _ int) bool {
	f.try(true)
	f.try(false)
	return true
}

func (s *solver) numbers(f *finding, parts []*node, types jsontype.Set, _ int) bool {
	var n numbers
	for _, part := range parts {
		for _, b := range []struct {
			keyword string
			add     func(limit)
			open    bool
		}{{"minimum", n.atLeast, false}, {"exclusiveMinimum", n.atLeast, true}, {"maximum", n.atMost, false}, {"exclusiveMaximum", n.atMost, true}} {
			if r := rational(part.doc[b.keyword]); r != nil {
				where := fmt.Sprintf("%s %v", part.where(b.keyword, s.place), part.doc[b.keyword])
				b.add(limit{r, b.open, where})
			}
		}
		if r := rational(part.doc["multipleOf"]); r != nil {
			n.multiple(r, fmt.Sprintf("%s %v", part.where("multipleOf", s.place), part.doc["multipleOf"]))
		}
	}
	whole := "number"
	if slices.ContainsFunc(parts, (*node).isInt64) {
		n.atLeast(limit{rational(json.Number("-9223372036854775808")), false, "the least integer -9223372036854775808"})
		n.atMost(limit{rational(json.Number("9223372036854775807")), false, "the greatest integer 9223372036854775807"})
	}
	if types&jsontype.Fraction == 0 {
		whole = "integer"
		n.multiple(rational(json.Number("1")), "")
	}
	values, complete := n.values(f.want + spare)
	for _, r := range values {
		if v, exact := numeral(r); exact {
			f.try(v)
		} else {
			complete = false
		}
	}
	if len(values) == 0 && complete {
		steps := strings.Join(slices.DeleteFunc(slices.Clone(n.steps), func(s string) bool { return s == "" }), " and ")
		switch {
		case n.low.value.Cmp(n.high.value) >= 0 && (n.low.value.Cmp(n.high.value) > 0 || n.low.open || n.high.open):
			f.because("%s and %s leave no number between them", n.low.where, n.high.where)
		case steps != "":
			f.because("no %s between %s and %s fits %s", whole, n.low.where, n.high.where, steps)
		default:
			f.because("no %s is between %s and %s", whole, n.low.where, n.high.where)
		}
	}
	return complete
}

// size is a bound of a length or count, and the place of its keyword.
type size struct {
	n     int
	where string
}

// sizes are the strictest bounds that the parts set by two keywords.
func (s *solver) sizes(parts []*node, lowest, highest string) (least, most size) {
	most.n = huge
	for _, n := range parts {
		if c := n.count(lowest, 0); c > least.n {
			least = size{c, fmt.Sprintf("%s %d", n.where(lowest, s.place), c)}
		}
		if c := n.count(highest, huge); c < most.n {
			most = size{c, fmt.Sprintf("%s %d", n.where(highest, s.place), c)}
		}
	}
	return least, most
}

// crossed says why no size is between the bounds, or none that fits into a call, if each
// element takes a number of bytes.
func (f *finding) crossed(least, most size, bytes int) bool {
	switch {
	case least.n > most.n:
		f.because("%s is more than %s", least.where, most.where)
	case least.n > maxArgs/bytes:
		f.because("%s is more than a call can hold (%d bytes)", least.where, maxArgs)
	default:
		return false
	}
	return true
}

// forms are the patterns and formats of texts.
type forms struct {
	loose, tight []string
	samples      []string
	said         []string
	most         size
}

func (s *solver) forms(parts []*node, most size) forms {
	o := forms{most: most}
	for _, n := range parts {
		if p, ok := n.doc["pattern"].(string); ok {
			o.loose, o.tight = append(o.loose, p), append(o.tight, p)
			o.said = append(o.said, fmt.Sprintf("%s %q", n.where("pattern", s.place), clip(p, 60)))
		}
		name, _ := n.doc["format"].(string)
		known, has := formats[name]
		if !has {
			continue
		}
		where := fmt.Sprintf("%s %s", n.where("format", s.place), name)
		o.said = append(o.said, where)
		o.samples = append(o.samples, known.samples...)
		o.loose = append(o.loose, known.loose)
		o.tight = append(o.tight, cmp.Or(known.tight, known.loose))
		if known.most > 0 && known.most < o.most.n {
			o.most = size{known.most, where}
		}
	}
	return o
}

func (s *solver) texts(f *finding, parts []*node, _ jsontype.Set, _ int) bool {
	before := len(f.why)
	least, most := s.sizes(parts, "minLength", "maxLength")
	o := s.forms(parts, most)
	if f.crossed(least, o.most, 1) {
		return true
	}
	for _, sample := range o.samples {
		f.try(sample)
	}
	longest := min(o.most.n, maxArgs)
	for _, patterns := range [][]string{o.tight, o.loose} {
		if f.enough() {
			return false
		}
		if s.work > maxWork {
			return false
		}
		a := newAutomaton(patterns)
		if a == nil {
			s.work += automatics / 4
			continue
		}
		found, complete, steps := a.texts(least.n, longest, f.want+spare)
		s.work += a.work + steps
		for _, text := range found {
			f.try(text)
		}
		if !slices.Equal(patterns, o.loose) {
			continue
		}
		if len(found) == 0 && complete {
			f.why = f.why[:before] // samples that did not fit prove nothing
			for _, b := range []size{least, o.most} {
				if b.where != "" && !slices.Contains(o.said, b.where) {
					o.said = append(o.said, b.where)
				}
			}
			f.because("no text satisfies %s", strings.Join(o.said, " and "))
		}
		return complete
	}
	return false
}
