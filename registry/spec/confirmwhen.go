package spec

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"voicegw/registry/document"
	"voicegw/registry/schema"
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

// maxConfirmWhen limits a tool's conditions.
const maxConfirmWhen = 32

var confirmOps = []string{"above", "below", "empty", "is", "not"}

// Asks reports whether the condition holds, or may hold.
func (c ConfirmWhen) Asks(args any) bool {
	v, _ := document.At(args, strings.Split(c.Argument, ".")) // nil if missing
	if c.Empty != nil {
		empty, sure := isBlank(v)
		return !sure || empty == *c.Empty
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

// isBlank reports whether a text, list or object is empty; sure is false for other values. A missing value (nil) is
// empty.
func isBlank(v any) (empty, sure bool) {
	switch v.(type) {
	case nil, string, []any, map[string]any:
		return saysNothing(v), true
	}
	return false, false
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

// kindOf returns the JSON type of a string, number or boolean; otherwise an empty string.
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

// confirmWhen parses the conditions; c is nil if the parameters have problems.
func (r *specReader) confirmWhen(s *Spec, c *Compiled) (all []ConfirmWhen) {
	v, has := r.object["confirmWhen"]
	if !has {
		return nil
	}
	place := document.Pointer{"confirmWhen"}
	list, ok := v.([]any)
	switch {
	case !ok || len(list) == 0:
		r.problem(place, "\"confirmWhen\" is a list of conditions, such as [{\"argument\": \"amount\", \"above\": 100}], got "+
			"%s; to ask for every call, leave it out.", document.Describe(v))
		return nil
	case len(list) > maxConfirmWhen:
		r.problem(place, "\"confirmWhen\" has %d conditions, at most %d are allowed.", len(list), maxConfirmWhen)
		return nil
	}
	if said, _ := r.object["requiresConfirmation"].(bool); !said && !s.RequiresConfirmation {
		r.problem(place, "The conditions say which calls a person is asked about, and requiresConfirmation is not true, so "+
			"nobody is ever asked; make it true, or leave them out.")
	}
	for i, v := range list {
		if one, ok := r.condition(place.Index(i), v, c); ok {
			all = append(all, one)
		}
	}
	return all
}

func (r *specReader) condition(place document.Pointer, v any, c *Compiled) (one ConfirmWhen, ok bool) {
	object, isObject := v.(map[string]any)
	if !isObject {
		r.problem(place, "A condition is an object such as {\"argument\": \"amount\", \"above\": 100}, got %s.", document.Describe(v))
		return one, false
	}
	before := len(r.problems)
	r.onlyKeys(place, object, "a condition", append([]string{"argument"}, confirmOps...))
	var has []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(confirmOps, key) {
			has = append(has, key)
		}
	}
	if len(has) != 1 {
		r.problem(place, "A condition has exactly one of %s, got %d of them; several conditions are entries of their own.",
			strings.Join(confirmOps, ", "), len(has))
	}
	name, isText := object["argument"].(string)
	var n *schema.Node
	switch {
	case !isText || name == "":
		r.problem(place.With("argument"), "The key \"argument\" names an argument, such as \"amount\" or "+
			"\"slot.start\", got %s.", document.Show(object["argument"]))
	case c != nil:
		n = c.Parameters.Root
		for token := range strings.SplitSeq(name, ".") {
			if n = n.Property(token); n == nil {
				r.problem(place.With("argument"), "The parameters have no %q; name an argument of theirs%s.",
					document.Shorten(name, 60), document.DidYouMean(name, c.Parameters.Root.AllNames()))
				break
			}
		}
	}
	one.Argument = name
	if len(has) == 1 {
		r.comparison(place.With(has[0]), object[has[0]], n, &one)
	}
	return one, len(r.problems) == before
}

// comparison parses the bound of an argument; n is its schema, or nil if unknown.
func (r *specReader) comparison(place document.Pointer, v any, n *schema.Node, one *ConfirmWhen) {
	var types []string
	if n != nil {
		n.EachInPlace(func(n *schema.Node) { types = append(types, n.Types()...) })
	}
	key := place[len(place)-1]
	wrong := func(wants ...string) bool {
		return len(types) > 0 && !slices.ContainsFunc(wants, func(w string) bool { return slices.Contains(types, w) })
	}
	number, isNumber := v.(json.Number)
	flag, isFlag := v.(bool)
	switch key {
	case "above", "below":
		switch {
		case !isNumber:
			r.problem(place, "%q compares with a number, got %s.", key, document.Describe(v))
		case wrong("number", "integer"):
			r.problem(place, "%q compares numbers, and %q is of the type %s.", key, one.Argument, strings.Join(types, ", "))
		case key == "above":
			one.Above = &number
		default:
			one.Below = &number
		}
	case "empty":
		switch {
		case !isFlag:
			r.problem(place, "\"empty\" is true or false, got %s.", document.Describe(v))
		case wrong("string", "array", "object"):
			r.problem(place, "A text, a list or an object can be empty, and %q is of the type %s.", one.Argument, strings.Join(types, ", "))
		default:
			one.Empty = &flag
		}
	default:
		r.equality(place, v, n, types, one)
	}
}

// equality parses the value of is or not.
func (r *specReader) equality(place document.Pointer, v any, n *schema.Node, types []string, one *ConfirmWhen) {
	key, kind := place[len(place)-1], kindOf(v)
	fits := slices.Contains(types, kind) || kind == "number" && slices.Contains(types, "integer")
	switch {
	case kind == "":
		r.problem(place, "%q compares with a text, a number, true or false, got %s.", key, document.Describe(v))
		return
	case len(types) > 0 && !fits:
		r.problem(place, "%q is of the type %s and never %s.", one.Argument, strings.Join(types, ", "), document.Show(v))
		return
	case n != nil && n.Refuses(v):
		r.problem(place, "%s is not a valid value of %q, so that the comparison always gives the same.", document.Show(v), one.Argument)
		return
	}
	if key == "is" {
		one.Is = document.AppendCanonical(nil, v)
	} else {
		one.Not = document.AppendCanonical(nil, v)
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
