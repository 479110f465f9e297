package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"voicegw/registry/jsontype"
)

// Problem is a schema that no value satisfies, or a value that can never be sent.
type Problem struct {
	// Path is the JSON pointer of the schema.
	Path string
	// Message says in a sentence what contradicts what.
	Message string
	// Unknown says that no value was found although none was ruled out, or that the schema
	// still has valid values despite the problem.
	Unknown bool
}

// maxProblems is how many problems of one schema are reported.
const maxProblems = 50

// Check finds out whether a parameter schema has a valid value, and the same for each
// schema in it that describes a value: for each property (which must also be possible
// together with the other properties that the object needs), for items, for each alternative
// and each definition. It reports the innermost schema that no value fits, and enum values
// that are never valid. The schema must be one that registry.CheckParameters accepts; for
// another, Check may report too little. It accepts any bytes.
func Check(schema json.RawMessage) []Problem {
	if !modest(schema) {
		return nil
	}
	doc, err := newDocument(schema)
	if err != nil {
		return nil
	}
	c := &checker{
		solver: solver{doc: doc, known: map[string]answer{}, open: map[string]bool{}},
		seen:   map[string]bool{}, bad: map[string]bool{}, used: map[string]bool{},
	}
	if root := doc.node(""); root != nil {
		c.visit([]*node{root}, nil, 0)
	}
	c.rest(doc.root, "", true)
	if c.work > maxWork {
		c.problems = slices.DeleteFunc(c.problems, func(p Problem) bool { return p.Unknown })
		c.tell("", true, "The schema is too intricate to find a valid value for each part of it; parts that nothing satisfies may be among them.")
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(c.problems)
}

// modest reports whether the numbers of a schema are small enough for exact arithmetic.
func modest(schema json.RawMessage) bool {
	dec := json.NewDecoder(strings.NewReader(string(schema)))
	dec.UseNumber()
	for {
		t, err := dec.Token()
		if err != nil {
			return !errors.As(err, new(*json.SyntaxError))
		}
		if n, ok := t.(json.Number); ok && rational(n) == nil {
			return false
		}
	}
}

// checker walks a schema.
type checker struct {
	solver

	problems []Problem
	seen     map[string]bool // sets of schemas already visited
	bad      map[string]bool // pointers of schemas already reported
	used     map[string]bool // pointers of schemas that describe a value
}

func (c *checker) tell(at string, unknown bool, format string, args ...any) {
	if len(c.problems) < maxProblems && !(unknown && c.bad[at]) {
		c.bad[at] = c.bad[at] || !unknown
		c.problems = append(c.problems, Problem{Path: at, Message: fmt.Sprintf(format, args...), Unknown: unknown})
	}
}

// visit checks schemas that describe one value together, and their subschemas. For the lists
// of alternatives named in chosen, conj already contains one alternative. It returns whether
// it reported a problem.
func (c *checker) visit(conj []*node, chosen []string, depth int) (told bool) {
	k := key(conj)
	if c.seen[k] || depth > maxDepth || len(conj) == 0 || c.work > maxWork {
		return c.bad[k]
	}
	c.seen[k] = true
	parts := c.together(conj)
	told = c.inside(conj, parts, chosen, depth)
	place := conj[0].at
	if !told {
		c.place = place
		switch a := c.fresh(conj); {
		case a.none():
			c.tell(place, false, "No value can be valid here: %s. Correct one of them.", a.why)
			told = true
		case len(a.values) == 0:
			c.tell(place, true, "No valid value was found here, but one may exist. If one does, name it in \"examples\".")
		default:
			c.possible(conj, parts)
			c.types(conj)
		}
	}
	c.bad[k] = told
	return told
}

// fresh solves conj; if it has no value, the reason is worded for this place and not for the
// place of an earlier search.
func (c *checker) fresh(conj []*node) answer {
	c.steps = 0
	a := c.solve(conj, 1, 0)
	if a.none() {
		clear(c.known)
		a = c.solve(conj, 1, 0)
	}
	return a
}

// together adds to conj the schemas that always apply with it: the targets of $ref, and allOf.
func (c *checker) together(conj []*node) []*node {
	var parts []*node
	queue := slices.Clone(conj)
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if slices.Contains(parts, n) {
			continue
		}
		parts = append(parts, n)
		c.used[n.at] = true
		if to := c.doc.referred(n); to != nil {
			queue = append(queue, to)
		}
		queue = append(queue, c.doc.children(n, "allOf")...)
	}
	return parts
}

// inside visits the schemas' properties, items and alternatives.
func (c *checker) inside(conj, parts []*node, chosen []string, depth int) (told bool) {
	o := c.shape(parts)
	for _, name := range o.names {
		if props := o.props[name]; !slices.ContainsFunc(props, isFalse) {
			told = c.visit(props, nil, depth+1) || told
		}
	}
	prefixes := 0
	for _, n := range parts {
		prefixes = max(prefixes, len(n.list("prefixItems")))
	}
	for i := range min(prefixes, 64) + 1 {
		if items := c.itemAt(parts, i); !slices.ContainsFunc(items, isFalse) {
			told = c.visit(items, nil, depth+1) || told
		}
	}
	for _, n := range parts {
		for _, keyword := range []string{"anyOf", "oneOf"} {
			list := join(n.at, keyword)
			for _, choice := range c.doc.children(n, keyword) {
				if !isFalse(choice) && !slices.Contains(chosen, list) {
					told = c.visit(append([]*node{choice}, conj...), append(slices.Clone(chosen), list), depth+1) || told
				}
			}
		}
		for name := range n.sub("patternProperties") {
			if sub := c.doc.child(n, "patternProperties", name); sub != nil && !isFalse(sub) {
				told = c.visit([]*node{sub}, nil, depth+1) || told
			}
		}
		told = c.values(n) || told
	}
	return told
}

func isFalse(n *node) bool { return n.doc == nil && n.must == "" && n.only == 0 && !n.yes }

// possible reports optional properties that can never be sent.
func (c *checker) possible(conj, parts []*node) {
	o := c.shape(parts)
	for _, name := range o.names {
		props := o.props[name]
		if _, required := o.required[name]; required || slices.ContainsFunc(props, isFalse) || c.bad[key(props)] {
			continue
		}
		// The name is derived from the pointer: no schema has it, and it is always the same.
		with := append(slices.Clone(conj), &node{at: conj[0].at, must: name})
		if a := c.fresh(with); a.none() {
			c.tell(props[0].at, false, "%q can never be sent: %s. Correct one of them, or remove the property.", clip(name, 60), a.why)
		}
	}
}

// types reports types in the schema's list that no value has.
func (c *checker) types(conj []*node) {
	for _, name := range conj[0].names("type") {
		for _, t := range jsontype.All {
			if t.Name != name {
				continue
			}
			if a := c.fresh(append(slices.Clone(conj), &node{at: conj[0].at, only: t.Set})); a.none() {
				c.problems = append(c.problems, Problem{Path: join(conj[0].at, "type"), Unknown: true,
					Message: fmt.Sprintf("No value of the type %s can be valid here (%s). Take the type out, or let its values in.", name, a.why)})
			}
		}
	}
}

// values reports values of n's enum that n itself refuses, unless it refuses all of them.
func (c *checker) values(n *node) (told bool) {
	list := n.list("enum")
	var refused []int
	var whys []string
	for i, v := range list {
		if valid, known, why := c.doc.accepts(n, v); known && !valid {
			refused, whys = append(refused, i), append(whys, why)
		}
	}
	if len(refused) == len(list) {
		return false // the schema as a whole is reported
	}
	for i, at := range refused {
		c.tell(join(join(n.at, "enum"), strconv.Itoa(at)), false, "The value %s can never be sent: %s. Correct it or take it out.", clip(canonical(list[at]), 60), whys[i])
	}
	return false
}

// rest visits the schemas that have not been reached yet: definitions, and pure conditions.
func (c *checker) rest(v any, at string, isSchema bool) {
	object, _ := v.(map[string]any)
	for _, keyword := range []string{"$defs", "definitions"} {
		named, _ := object[keyword].(map[string]any)
		for _, name := range sortedNames(named) {
			if n := c.doc.node(join(join(at, keyword), name)); n != nil && isSchema && !isFalse(n) && !c.used[n.at] {
				c.visit([]*node{n}, nil, 0)
			}
		}
	}
}
