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

// Problem is a schema that no value satisfies, or a value that never can be sent.
type Problem struct {
	// Path is the JSON pointer of the schema.
	Path string
	// Message says in a sentence what contradicts what.
	Message string
	// Unknown says that no value was found and none was ruled out, or that what is
	// told leaves the schema with valid values.
	Unknown bool
}

// maxProblems is how many problems are told of one schema.
const maxProblems = 50

// Check asks of a parameter schema whether there is a valid value, and the same of each
// schema in it that describes a value: of each property (which must also be possible
// together with what else the object needs), of items, of each alternative, of each
// definition. It names the innermost schema that no value fits, and values of enums
// that are never valid. The schema must be one that registry.CheckParameters has no
// problem with; of another, Check says nothing or not all. It takes any bytes.
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

// modest says whether the numbers of a schema are small enough for exact arithmetic.
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
	seen     map[string]bool // sets of schemas that were looked at
	bad      map[string]bool // pointers of schemas that are told of
	used     map[string]bool // pointers of schemas that describe a value
}

func (c *checker) tell(at string, unknown bool, format string, args ...any) {
	if len(c.problems) < maxProblems && !(unknown && c.bad[at]) {
		c.bad[at] = c.bad[at] || !unknown
		c.problems = append(c.problems, Problem{Path: at, Message: fmt.Sprintf(format, args...), Unknown: unknown})
	}
}

// visit looks at schemas that describe one value together, and at what is in them. Of the
// lists of alternatives named in chosen, conj has one already. It says whether something
// was told.
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

// fresh solves; where there is no value, in words for this place and not for that of an
// earlier search.
func (c *checker) fresh(conj []*node) answer {
	c.steps = 0
	a := c.solve(conj, 1, 0)
	if a.none() {
		clear(c.known)
		a = c.solve(conj, 1, 0)
	}
	return a
}

// together adds to conj what always holds with it: what it refers to, and allOf.
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

// inside visits what is in the schemas: properties, items, alternatives.
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

// possible tells of optional properties that can never be sent.
func (c *checker) possible(conj, parts []*node) {
	o := c.shape(parts)
	for _, name := range o.names {
		props := o.props[name]
		if _, required := o.required[name]; required || slices.ContainsFunc(props, isFalse) || c.bad[key(props)] {
			continue
		}
		// A name that no schema has, made up of the pointer so that it is always the same.
		with := append(slices.Clone(conj), &node{at: conj[0].at, must: name})
		if a := c.fresh(with); a.none() {
			c.tell(props[0].at, false, "%q can never be sent: %s. Correct one of them, or remove the property.", clip(name, 60), a.why)
		}
	}
}

// types tells of types of the schema's list that no value has.
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

// values tells of values of n's enum that n itself refuses, unless it refuses all.
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
		return false // the schema as a whole is told of
	}
	for i, at := range refused {
		c.tell(join(join(n.at, "enum"), strconv.Itoa(at)), false, "The value %s can never be sent: %s. Correct it or take it out.", clip(canonical(list[at]), 60), whys[i])
	}
	return false
}

// rest visits the schemas that nothing has led to yet: definitions, and what only tests.
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
