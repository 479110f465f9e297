package adapter

import "strings"

// typeSet is a set of JSON Schema types (draft 2020-12, validation, section 6.1.1). A number is an integer or a
// fraction, so typeNumber includes typeInteger.
type typeSet uint8

// typeFraction is the numbers that aren't integers; JSON Schema has no name for it.
const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeFraction
	typeString
	typeArray
	typeObject

	typeNumber = typeInteger | typeFraction
	typeAny    = typeNull | typeBoolean | typeNumber | typeString | typeArray | typeObject
)

type namedType struct {
	Name string
	Set  typeSet
}

// namedTypes are all named types in printing order; read-only.
var namedTypes = []namedType{
	{"object", typeObject}, {"array", typeArray}, {"string", typeString}, {"number", typeNumber},
	{"integer", typeInteger}, {"boolean", typeBoolean}, {"null", typeNull},
}

func parseType(value any) typeSet {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var t typeSet
	for _, one := range list {
		for _, n := range namedTypes {
			if n.Name == one {
				t |= n.Set
			}
		}
	}
	return t
}

// Names returns the fewest names for the set, without "integer" next to "number".
func (t typeSet) Names() []string {
	var all []string
	for _, n := range namedTypes {
		if t&n.Set == n.Set {
			all, t = append(all, n.Name), t&^n.Set
		}
	}
	return all
}

// String returns the names for a message, such as "object or null".
func (t typeSet) String() string { return strings.Join(t.Names(), " or ") }

// Value returns the value of "type": a name, or a list of names.
func (t typeSet) Value() any {
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
