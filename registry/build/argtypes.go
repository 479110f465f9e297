package build

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

type shape struct {
	types       []string // without null
	nullable    bool
	properties  []member
	values      *node // of a map with arbitrary names; true for any
	required    map[string]bool
	items       *node
	enum        []*node
	byDefault   *node
	description string
	bounds      []string // for the comment
}

// has reports whether t is the only type.
func (sh *shape) has(t string) bool { return len(sh.types) == 1 && sh.types[0] == t }

// errTypes is wrapped by the error for a schema without a Go type.
var errTypes = errors.New("the parameters have no Go type")

func shapeOf(n *node) *shape {
	sh := &shape{required: map[string]bool{}}
	sh.merge(n)
	if i := slices.IndexFunc(sh.enum, func(v *node) bool { return v.kind == kindNull }); i >= 0 {
		sh.nullable = true
		sh.enum = slices.Delete(sh.enum, i, i+1)
	}
	return sh
}

// merge adds n's constraints to sh, without replacing existing ones.
func (sh *shape) merge(n *node) {
	sh.annotate(n)
	sh.mergeTypes(n)
	sh.properties = append(sh.properties, membersOf(n.get("properties"))...)
	sh.mergeValues(n)
	if list := n.get("required"); list != nil {
		for _, name := range list.items {
			sh.required[name.text] = true
		}
	}
	sh.alternatives(n)
}

func (sh *shape) mergeValues(n *node) {
	extra := n.get("additionalProperties")
	if sh.values == nil && extra != nil && (extra.kind != kindBool || extra.text != "false") {
		sh.values = extra
	}
}

func (sh *shape) alternatives(n *node) {
	list := n.get("anyOf")
	if list == nil {
		list = n.get("oneOf")
	}
	if list == nil || len(sh.types) > 0 || len(sh.enum) > 0 {
		return
	}
	var others []*node
	for _, one := range list.items {
		if one.str("type") == "null" {
			sh.nullable = true
		} else {
			others = append(others, one)
		}
	}
	if len(others) == 1 {
		sh.merge(others[0])
	}
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

// ranges describes the limits of a value.
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
	if i := n.get("items"); i != nil && sh.items == nil {
		sh.items = i
	}
}

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
