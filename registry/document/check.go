package document

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// schemaCheck checks restrictions in addition to the meta-schema.
type schemaCheck struct {
	problems []Problem
	closed   map[*Node]bool // results of node.closed, cached
	mayMap   bool           // whether an object may be a map
}

func (c *schemaCheck) problem(place Pointer, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: place.String(), Message: fmt.Sprintf(format, args...)})
}

func (c *schemaCheck) all(root *Node, all []*Node) {
	broken := len(c.problems) > 0 // a $ref is known; its target is not judged
	if !broken {
		if root.nodes > maxSchemaNodes {
			c.problem(nil, "With every $ref inlined, the schema has more than %d parts; make it smaller.", maxSchemaNodes)
		}
		if root.height > maxSchemaHeight {
			c.problem(nil, "With every $ref inlined, the schema has more than %d levels; make it flatter.", maxSchemaHeight)
		}
		c.closed = map[*Node]bool{}
	}
	if typ, _ := root.Doc["type"].(string); typ != "object" {
		c.problem(Pointer{"type"}, "The parameters must be an object: write \"type\": \"object\".")
	}
	for _, n := range all {
		c.keywords(n)
		c.idle(n)
		c.patterns(n)
		c.twice(n)
		if format, ok := n.Doc["format"].(string); ok && !slices.Contains(formats, format) {
			c.problem(n.at.With("format"), "The format %q is not supported; use one of %s, or a pattern.",
				Shorten(format, 40), strings.Join(formats, ", "))
		}
	}
	if !broken {
		c.value(root)
		c.open(root, map[*Node]bool{})
	}
	c.unappliedDefaults(root, false)
}

func (c *schemaCheck) keywords(n *Node) {
	for _, keyword := range slices.Sorted(maps.Keys(n.Doc)) {
		place := n.at.With(keyword)
		if why, refused := refusedKeywords[keyword]; refused {
			c.problem(place, "The keyword %q %s.", keyword, why)
			continue
		}
		if _, known := KeywordNamed(keyword); !known && !strings.HasPrefix(keyword, "x-") {
			c.problem(place, "%q is not a keyword of JSON Schema draft 2020-12 and would be ignored%s.",
				Shorten(keyword, 40), DidYouMean(keyword, keywordNames()))
		}
	}
	switch draft, has := n.Doc["$schema"]; {
	case has && len(n.at) > 0:
		c.problem(n.at.With("$schema"), "$schema is allowed only at the top; remove it here.")
	case has && draft != draft202012:
		c.problem(n.at.With("$schema"), "$schema must be %q, or absent.", draft202012)
	}
}

func (c *schemaCheck) patterns(n *Node) {
	pattern, ok := n.Doc["pattern"].(string)
	if !ok {
		return
	}
	if inSlashes.MatchString(pattern) {
		c.problem(n.at.With("pattern"), "The pattern %s is between slashes, so it matches only texts with slashes; remove the slashes "+
			"and the flags. (Write [/] to match a slash.)", Show(pattern))
	}
	if _, err := regexp.Compile(pattern); err != nil {
		c.problem(n.at.With("pattern"), "The regular expression %s does not compile (%v); lookahead, lookbehind and back "+
			"references are not supported (RE2 syntax).", Show(pattern), err)
	}
}

// inSlashes matches a pattern as in JavaScript and Perl.
var inSlashes = regexp.MustCompile(`(?s)^/.*/[dgimsuvxy]*$`)

// twice reports equal values of an enum; numbers are compared by value.
func (c *schemaCheck) twice(n *Node) {
	list, _ := n.Doc["enum"].([]any)
	first := map[string]int{}
	for i, v := range list {
		text := string(AppendCanonical(nil, v))
		if before, has := first[text]; has {
			c.problem(n.at.With("enum").Index(i), "The enum has the value %s twice, first as item %d; remove one.",
				Show(v), before)
			continue
		}
		first[text] = i
	}
}

// idle reports keywords without effect: they constrain types that aren't accepted, or depend on a missing keyword.
func (c *schemaCheck) idle(n *Node) {
	types := n.Types()
	for _, keyword := range slices.Sorted(maps.Keys(n.Doc)) {
		k, _ := KeywordNamed(keyword)
		applies := func(t string) bool { return slices.Contains(k.Types, t) }
		if len(types) > 0 && len(k.Types) > 0 && !slices.ContainsFunc(types, applies) {
			c.problem(n.at.With(keyword), "%q applies to the type %s, but the type here is %s, so it has no effect; change one "+
				"of them.", keyword, strings.Join(k.Types, " or "), strings.Join(types, " or "))
		}
	}
	if needed, is := n.Doc["dependentRequired"].(map[string]any); is && n.Doc["additionalProperties"] == false {
		for _, name := range slices.Sorted(maps.Keys(needed)) {
			if _, has := n.Props[name]; !has {
				c.problem(n.at.With("dependentRequired").With(name),
					"This has no effect, because the object allows no property %q; correct the name, or remove it.", Shorten(name, 40))
			}
		}
	}
}

// open reports the places below n where a value may have parts without a schema.
func (c *schemaCheck) open(n *Node, seen map[*Node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	var values []*Node
	for _, name := range n.Names {
		values = append(values, n.Props[name])
	}
	if n.Items != nil {
		values = append(values, n.Items)
	}
	switch extra, has := n.Doc["additionalProperties"]; {
	case !has || extra == false:
	case c.isMap(n):
		if n.extra.Doc != nil { // true declares arbitrary values
			values = append(values, n.extra)
		}
	case c.mayMap:
		c.problem(n.at.With("additionalProperties"),
			"Unknown properties are allowed here; write \"additionalProperties\": false and name every property. Only an "+
				"object without \"properties\", below the root, may be a map.")
	default:
		c.problem(n.at.With("additionalProperties"),
			"Unknown properties are allowed here; write \"additionalProperties\": false and name every property.")
	}
	for _, child := range values {
		c.value(child)
		c.open(child, seen)
	}
	if n.Ref != nil {
		c.open(n.Ref, seen)
	}
	if c.closedAlone(n) && !c.isMap(n) {
		return // the other subschemas can only restrict the same value
	}
	for _, part := range slices.Concat(n.AllOf, n.AnyOf, n.OneOf) {
		c.open(part, seen)
	}
}

func (c *schemaCheck) isMap(n *Node) bool {
	return c.mayMap && len(n.at) > 0 && n.mapped()
}

func (c *schemaCheck) value(n *Node) {
	if c.isClosed(n) {
		return
	}
	types := n.Types()
	switch {
	case n.Doc["additionalProperties"] != nil: // reported already
	case slices.Contains(types, "object") && len(n.at) == 0 && len(n.Names) == 0:
		c.problem(n.at, "This object has no properties and allows any. A tool without arguments omits \"parameters\"; "+
			"otherwise list them under \"properties\", and add \"additionalProperties\": false.")
	case slices.Contains(types, "object"):
		c.problem(n.at, "This object allows unknown properties; add \"additionalProperties\": false.")
	case slices.Contains(types, "array"):
		c.problem(n.at, "This array accepts any items; add \"items\" with their schema.")
	default:
		c.problem(n.at, "This accepts any value; add \"type\" (or enum, const, $ref), and for an object its properties and "+
			"\"additionalProperties\": false.")
	}
}

func (c *schemaCheck) isClosed(n *Node) bool {
	known, ok := c.closed[n]
	if !ok {
		known = c.closes(n)
		c.closed[n] = known
	}
	return known
}

func (c *schemaCheck) closes(n *Node) bool {
	if n.Doc == nil {
		return !n.yes
	}
	_, isEnum := n.Doc["enum"]
	_, isConst := n.Doc["const"]
	if isEnum || isConst {
		return true
	}
	if n.Ref != nil && c.isClosed(n.Ref) || slices.ContainsFunc(n.AllOf, c.isClosed) {
		return true
	}
	for _, choices := range [][]*Node{n.AnyOf, n.OneOf} {
		if len(choices) > 0 && !slices.ContainsFunc(choices, func(choice *Node) bool { return !c.isClosed(choice) }) {
			return true
		}
	}
	return c.closedAlone(n)
}

// closedAlone reports whether n is closed without the subschemas that hold for the same value.
func (c *schemaCheck) closedAlone(n *Node) bool {
	types := n.Types()
	return len(types) > 0 &&
		(!slices.Contains(types, "object") || n.Doc["additionalProperties"] == false || c.isMap(n)) &&
		(!slices.Contains(types, "array") || n.Items != nil)
}

func (c *schemaCheck) unappliedDefaults(n *Node, unapplied bool) {
	if unapplied && n.hasDefault {
		c.problem(n.at.With("default"), "A default here is never applied, because this part only tests a value; move it to "+
			"the schema of the property.")
	}
	for _, child := range n.filled() {
		if child != n.Ref {
			c.unappliedDefaults(child, unapplied)
		}
	}
	if n.extra != nil {
		c.unappliedDefaults(n.extra, true)
	}
}
