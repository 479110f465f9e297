package build

import (
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"
)

// shape is what a schema says about a value's type, with references followed and allOf
// merged.
type shape struct {
	types       []string // without null
	nullable    bool
	properties  []member
	required    map[string]bool
	items       *node
	tuple       bool // prefixItems: the items differ
	enum        []*node
	byDefault   *node
	description string
	bounds      []string // for the comment
}

// has reports whether t is the only type.
func (sh *shape) has(t string) bool { return len(sh.types) == 1 && sh.types[0] == t }

// errTypes is wrapped by the error for a schema that cannot become a Go type.
var errTypes = errors.New("the parameters have no Go type")

// shaper follows the references of one schema.
type shaper struct{ root *node }

// of reads a schema. depth bounds the references.
func (s shaper) of(n *node, depth int) (*shape, error) {
	sh := &shape{required: map[string]bool{}}
	if err := s.merge(sh, n, depth); err != nil {
		return nil, err
	}
	sh.normalize()
	return sh, nil
}

// merge adds n's constraints to sh. Those that sh already has stay.
func (s shaper) merge(sh *shape, n *node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: its references do not end", errTypes)
	}
	sh.annotate(n)
	sh.mergeTypes(n)
	for _, m := range membersOf(n.get("properties")) {
		if !slices.ContainsFunc(sh.properties, func(p member) bool { return p.key == m.key }) {
			sh.properties = append(sh.properties, m)
		}
	}
	if list := n.get("required"); list != nil {
		for _, name := range list.items {
			sh.required[name.text] = true
		}
	}
	if ref := n.str("$ref"); ref != "" {
		place, err := url.PathUnescape(strings.TrimPrefix(ref, "#")) // a fragment of a URL (RFC 6901 section 6)
		target := s.root.at(place)
		if err != nil || !strings.HasPrefix(ref, "#") || target == nil {
			return fmt.Errorf("%w: the reference %s leads nowhere", errTypes, ref)
		}
		if err := s.merge(sh, target, depth+1); err != nil {
			return err
		}
	}
	if all := n.get("allOf"); all != nil {
		for _, one := range all.items {
			if err := s.merge(sh, one, depth+1); err != nil {
				return err
			}
		}
	}
	return s.alternatives(sh, n, depth)
}

// alternatives understands one kind: a schema or null. Other kinds have no Go type of
// their own, and their values stay raw JSON.
func (s shaper) alternatives(sh *shape, n *node, depth int) error {
	list := n.get("anyOf")
	if list == nil {
		list = n.get("oneOf")
	}
	if list == nil || len(sh.types) > 0 || len(sh.enum) > 0 {
		return nil
	}
	var others []*node
	for _, one := range list.items {
		if one.str("type") == "null" {
			sh.nullable = true
		} else {
			others = append(others, one)
		}
	}
	if len(others) != 1 {
		return nil
	}
	return s.merge(sh, others[0], depth+1)
}

func (sh *shape) annotate(n *node) {
	if sh.description == "" {
		sh.description = n.str("description")
	}
	if d := n.get("default"); sh.byDefault == nil && d != nil && d.kind != kindNull {
		sh.byDefault = d
	}
	sh.bounds = append(sh.bounds, ranges(n)...)
	if f := n.str("format"); f != "" {
		sh.bounds = append(sh.bounds, "Format "+f+".")
	}
}

// ranges describes in sentences how large a value may be.
func ranges(n *node) []string {
	var all []string
	for _, b := range [...]struct{ low, high, unit string }{
		{"minimum", "maximum", ""}, {"exclusiveMinimum", "exclusiveMaximum", " (exclusive)"},
		{"minLength", "maxLength", " characters"}, {"minItems", "maxItems", " items"},
	} {
		low, high := n.get(b.low), n.get(b.high)
		switch {
		case low != nil && high != nil:
			all = append(all, fmt.Sprintf("%s to %s%s.", low.compact(), high.compact(), b.unit))
		case low != nil:
			all = append(all, fmt.Sprintf("At least %s%s.", low.compact(), b.unit))
		case high != nil:
			all = append(all, fmt.Sprintf("At most %s%s.", high.compact(), b.unit))
		}
	}
	return all
}

func (sh *shape) mergeTypes(n *node) {
	if t := n.get("type"); t != nil && len(sh.types) == 0 {
		names := t.items
		if t.kind == kindString {
			names = []*node{t}
		}
		for _, name := range names {
			if name.text == "null" {
				sh.nullable = true
			} else {
				sh.types = append(sh.types, name.text)
			}
		}
	}
	if e := n.get("enum"); e != nil && len(sh.enum) == 0 {
		sh.enum = slices.Clone(e.items)
	}
	if c := n.get("const"); c != nil && len(sh.enum) == 0 {
		sh.enum = []*node{c}
	}
	if i := n.get("items"); i != nil && sh.items == nil {
		sh.items = i
	}
	sh.tuple = sh.tuple || n.get("prefixItems") != nil
}

// normalize draws conclusions that need the whole schema.
func (sh *shape) normalize() {
	if i := slices.IndexFunc(sh.enum, func(v *node) bool { return v.kind == kindNull }); i >= 0 {
		sh.nullable = true
		sh.enum = slices.Delete(sh.enum, i, i+1)
	}
	if slices.Contains(sh.types, "number") {
		sh.types = slices.DeleteFunc(sh.types, func(t string) bool { return t == "integer" })
	}
	if len(sh.types) == 0 && len(sh.properties) > 0 {
		sh.types = []string{"object"}
	}
	if len(sh.types) == 0 && len(sh.enum) > 0 {
		sh.types = []string{typeOfValues(sh.enum)}
	}
}

// typeOfValues returns the type that all values have; empty if their types differ.
func typeOfValues(values []*node) string {
	all := ""
	for _, v := range values {
		t := ""
		switch v.kind {
		case kindString:
			t = "string"
		case kindBool:
			t = "boolean"
		case kindNumber:
			t = "number"
			if _, ok := integer(v.text); ok {
				t = "integer"
			}
		}
		switch {
		case t == "":
			return ""
		case all == "" || all == t:
			all = t
		case all+t == "integernumber" || all+t == "numberinteger":
			all = "number"
		default:
			return ""
		}
	}
	return all
}

// integer reads a JSON number that is whole and fits an int64.
func integer(text string) (int64, bool) {
	const longest = 40 // 1e999999999 is a short text and a long number
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); len(text) > longest || ok && len(exponent) > 3 {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

func membersOf(n *node) []member {
	if n == nil {
		return nil
	}
	return n.members
}
