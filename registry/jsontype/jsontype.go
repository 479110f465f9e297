// Package jsontype holds the types of JSON values by the names that JSON Schema gives
// them (draft 2020-12, validation, section 6.1.1), as sets.
package jsontype

import "strings"

// Set is a set of types. A number is an integer or a fraction, so Number includes Integer.
// Its methods may be called concurrently.
type Set uint8

// The types. Fraction has no name in JSON Schema: it is the numbers that are not integers.
const (
	Null Set = 1 << iota
	Boolean
	Integer
	Fraction
	String
	Array
	Object

	Number = Integer | Fraction
	Any    = Null | Boolean | Number | String | Array | Object
)

// Named is a type that a schema can name.
type Named struct {
	Name string
	Set  Set
}

// All are the named types, in the order in which they are printed. It must not be changed.
var All = []Named{
	{"object", Object}, {"array", Array}, {"string", String}, {"number", Number},
	{"integer", Integer}, {"boolean", Boolean}, {"null", Null},
}

// Parse reads the value of "type", a name or a list of names. It ignores unknown names.
func Parse(value any) Set {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var t Set
	for _, one := range list {
		for _, n := range All {
			if n.Name == one {
				t |= n.Set
			}
		}
	}
	return t
}

// Names returns the fewest names that make up the set, without "integer" beside "number".
func (t Set) Names() []string {
	var all []string
	for _, n := range All {
		if t&n.Set == n.Set {
			all, t = append(all, n.Name), t&^n.Set
		}
	}
	return all
}

// String returns the names for a message: "object or null".
func (t Set) String() string { return strings.Join(t.Names(), " or ") }

// Value returns the set as the value of "type": a name, or a list of names.
func (t Set) Value() any {
	names := t.Names()
	if len(names) == 1 {
		return names[0]
	}
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}
