package adapter

import "slices"

// keyword is a JSON Schema keyword of canonical schemas.
type keyword struct {
	name    string
	holds   holding // the places of subschemas in its value
	applies typeSet // the types it constrains; 0 for all, or for no constraint
}

// holding is where a keyword's value has subschemas.
type holding uint8

const (
	holdsNone holding = iota
	holdsSchema
	holdsList
	holdsMap
)

// Keywords returns all keywords that a canonical schema may use, in the order of OpenAI's form. Other keywords are
// refused in every form, because nothing would check them; names that start with "x-" are dropped.
func Keywords() []string {
	names := make([]string, len(table))
	for i, k := range table {
		names[i] = k.name
	}
	return names
}

// known returns the row of a keyword; ok is false for another one.
func known(name string) (k keyword, ok bool) {
	if i := slices.IndexFunc(table, func(k keyword) bool { return k.name == name }); i >= 0 {
		return table[i], true
	}
	return keyword{}, false
}

var table = []keyword{
	{name: "type"}, {name: "title"}, {name: "description"}, {name: "enum"}, {name: "const"}, {name: "default"},
	{name: "examples"}, {name: "deprecated"}, {name: "readOnly"}, {name: "writeOnly"},
	{name: "format", applies: typeString}, {name: "contentEncoding", applies: typeString},
	{name: "contentMediaType", applies: typeString}, {name: "pattern", applies: typeString},
	{name: "minLength", applies: typeString}, {name: "maxLength", applies: typeString},
	{name: "minimum", applies: typeNumber}, {name: "exclusiveMinimum", applies: typeNumber},
	{name: "maximum", applies: typeNumber}, {name: "exclusiveMaximum", applies: typeNumber},
	{name: "multipleOf", applies: typeNumber}, {name: "items", holds: holdsSchema, applies: typeArray},
	{name: "minItems", applies: typeArray}, {name: "maxItems", applies: typeArray},
	{name: "uniqueItems", applies: typeArray}, {name: "properties", holds: holdsMap, applies: typeObject},
	{name: "required", applies: typeObject}, {name: "minProperties", applies: typeObject},
	{name: "maxProperties", applies: typeObject},
	{name: "additionalProperties", holds: holdsSchema, applies: typeObject},
	{name: "dependentRequired", applies: typeObject}, {name: "anyOf", holds: holdsList},
	{name: "oneOf", holds: holdsList}, {name: "allOf", holds: holdsList}, {name: "$ref"},
	{name: "$defs", holds: holdsMap}, {name: "$schema"}, {name: "$comment"},
}
