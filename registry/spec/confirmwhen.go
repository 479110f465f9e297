package spec

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"voicegw/registry/document"
)

// ConfirmWhen is a condition on an argument that requires approval. Exactly one field other than Argument is set.
type ConfirmWhen struct {
	// Argument names an argument or a part of one, such as slot.start.
	Argument string `json:"argument"`
	// Above and Below compare numbers, excluding the bound.
	Above *json.Number `json:"above,omitempty"`
	Below *json.Number `json:"below,omitempty"`
	// Is and Not compare with a string, a number, true or false, as JSON.
	Is  json.RawMessage `json:"is,omitempty"`
	Not json.RawMessage `json:"not,omitempty"`
	// Empty requires a text, list or object to be empty, or not. A missing one is empty.
	Empty *bool `json:"empty,omitempty"`
}

// Asks reports whether the condition holds, or may hold.
func (c ConfirmWhen) Asks(args any) bool {
	v, _ := document.At(args, strings.Split(c.Argument, ".")) // nil if missing
	if c.Empty != nil {
		switch v.(type) {
		case nil, string, []any, map[string]any:
			return saysNothing(v) == *c.Empty
		}
		return true
	}
	switch {
	case c.Above != nil:
		order, sure := compare(v, *c.Above)
		return !sure || order > 0
	case c.Below != nil:
		order, sure := compare(v, *c.Below)
		return !sure || order < 0
	case c.Is != nil:
		equal, sure := equals(v, c.Is)
		return !sure || equal
	case c.Not != nil:
		equal, sure := equals(v, c.Not)
		return !sure || !equal
	}
	return true
}

func compare(v any, bound json.Number) (order int, sure bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	a, fits := new(big.Rat).SetString(string(number))
	b, right := new(big.Rat).SetString(string(bound))
	if !fits || !right {
		return 0, false
	}
	return a.Cmp(b), true
}

func equals(v any, with json.RawMessage) (equal, sure bool) {
	other, problems, ok := document.Decode(with, document.MaxArgsBytes, document.MaxArgsDepth)
	if !ok || len(problems) > 0 || kindOf(v) == "" || kindOf(v) != kindOf(other) {
		return false, false
	}
	return string(document.AppendCanonical(nil, v)) == string(document.AppendCanonical(nil, other)), true
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	}
	return ""
}

func (r *reader) confirmWhen(s *Spec, root *document.Node) {
	for i := range s.ConfirmWhen {
		place := document.Pointer{"confirmWhen"}.Index(i)
		if r.fine(place...) {
			r.condition(place, &s.ConfirmWhen[i], root)
		}
	}
}

func (r *reader) condition(place document.Pointer, c *ConfirmWhen, n *document.Node) {
	var has []string
	for key, given := range map[string]bool{"above": c.Above != nil, "below": c.Below != nil, "is": c.Is != nil, "not": c.Not != nil,
		"empty": c.Empty != nil} {
		if given {
			has = append(has, key)
		}
	}
	if len(has) != 1 {
		r.problem(place, "A condition has exactly one of above, below, empty, is, not, got %d of them; write each condition "+
			"as a separate entry.", len(has))
	}
	names := n.AllNames()
	for token := range strings.SplitSeq(c.Argument, ".") {
		if n = n.Property(token); n == nil {
			r.problem(place.With("argument"), "The parameters have no %q; name one of their properties%s.",
				document.Shorten(c.Argument, 60), document.DidYouMean(c.Argument, names))
			return
		}
	}
	if len(has) != 1 {
		return
	}
	var types []string
	n.EachInPlace(func(n *document.Node) { types = append(types, n.Types()...) })
	lacks := func(wants ...string) bool {
		return len(types) > 0 && !slices.ContainsFunc(wants, func(w string) bool { return slices.Contains(types, w) })
	}
	place, told := place.With(has[0]), strings.Join(types, ", ")
	switch has[0] {
	case "above", "below":
		if lacks("number", "integer") {
			r.problem(place, "%q compares numbers, but %q has the type %s.", has[0], c.Argument, told)
		}
	case "empty":
		if lacks("string", "array", "object") {
			r.problem(place, "Only a text, a list or an object can be empty, but %q has the type %s.", c.Argument, told)
		}
	default:
		v, _, _ := document.Decode(slices.Concat(c.Is, c.Not), document.MaxArgsBytes, document.MaxArgsDepth)
		kind := kindOf(v)
		switch {
		case kind == "":
			r.problem(place, "%q compares with a text, a number, true or false, got %s.", has[0], document.Describe(v))
		case lacks(kind) && (kind != "number" || lacks("integer")):
			r.problem(place, "%q has the type %s and is never %s.", c.Argument, told, document.Show(v))
		case n.Refuses(v):
			r.problem(place, "%s is not a valid value of %q, so the comparison always has the same result.", document.Show(v), c.Argument)
		}
	}
}

// String describes the condition, such as "amount above 100".
func (c ConfirmWhen) String() string {
	switch {
	case c.Above != nil:
		return c.Argument + " above " + c.Above.String()
	case c.Below != nil:
		return c.Argument + " below " + c.Below.String()
	case c.Is != nil:
		return c.Argument + " is " + string(c.Is)
	case c.Not != nil:
		return c.Argument + " is not " + string(c.Not)
	case c.Empty != nil && *c.Empty:
		return c.Argument + " is empty"
	}
	return c.Argument + " is not empty"
}
