package document

import "slices"

// Keyword is a keyword that the schemas of tools may use.
type Keyword struct {
	Name  string
	Holds Holding  // where its value has subschemas
	Types []string // the types that it constrains; none if it constrains all or nothing
}

// Holding says where a keyword's value has subschemas.
type Holding uint8

// The value has no subschemas, is one, or is a list or an object of them.
const (
	HoldsNone Holding = iota
	HoldsSchema
	HoldsList
	HoldsMap
)

var (
	ofStrings = []string{"string"}
	ofNumbers = []string{"integer", "number"}
	ofArrays  = []string{"array"}
	ofObjects = []string{"object"}
)

// Keywords are all of them, in the order of OpenAI's form. Names that start with "x-" are dropped from every form, and others
// refused, because nothing would check them.
var Keywords = []Keyword{
	{Name: "type"}, {Name: "title"}, {Name: "description"}, {Name: "enum"}, {Name: "const"}, {Name: "default"},
	{Name: "examples"}, {Name: "deprecated"}, {Name: "readOnly"}, {Name: "writeOnly"},
	{Name: "format", Types: ofStrings}, {Name: "contentEncoding", Types: ofStrings}, {Name: "contentMediaType", Types: ofStrings},
	{Name: "pattern", Types: ofStrings}, {Name: "minLength", Types: ofStrings}, {Name: "maxLength", Types: ofStrings},
	{Name: "minimum", Types: ofNumbers}, {Name: "exclusiveMinimum", Types: ofNumbers},
	{Name: "maximum", Types: ofNumbers}, {Name: "exclusiveMaximum", Types: ofNumbers}, {Name: "multipleOf", Types: ofNumbers},
	{Name: "items", Holds: HoldsSchema, Types: ofArrays}, {Name: "minItems", Types: ofArrays}, {Name: "maxItems", Types: ofArrays},
	{Name: "uniqueItems", Types: ofArrays}, {Name: "properties", Holds: HoldsMap, Types: ofObjects},
	{Name: "required", Types: ofObjects}, {Name: "minProperties", Types: ofObjects}, {Name: "maxProperties", Types: ofObjects},
	{Name: "additionalProperties", Holds: HoldsSchema, Types: ofObjects}, {Name: "dependentRequired", Types: ofObjects},
	{Name: "anyOf", Holds: HoldsList}, {Name: "oneOf", Holds: HoldsList}, {Name: "allOf", Holds: HoldsList}, {Name: "$ref"},
	{Name: "$defs", Holds: HoldsMap}, {Name: "$schema"}, {Name: "$comment"},
}

// KeywordNamed returns a keyword; ok is false for another name.
func KeywordNamed(name string) (k Keyword, ok bool) {
	if i := slices.IndexFunc(Keywords, func(k Keyword) bool { return k.Name == name }); i >= 0 {
		return Keywords[i], true
	}
	return Keyword{}, false
}

func keywordNames() []string {
	var names []string
	for _, k := range Keywords {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return names
}

// refusedKeywords say why, and what to do instead.
var refusedKeywords = map[string]string{
	"$id":                   "changes how $ref is resolved; remove it and refer with \"#/$defs/…\"",
	"$anchor":               "is not supported by the providers; refer with \"#/$defs/…\"",
	"$dynamicAnchor":        "is not supported by the providers; refer with \"#/$defs/…\"",
	"$dynamicRef":           "is not supported by the providers; refer with \"#/$defs/…\"",
	"$recursiveRef":         "belongs to an older draft; refer with \"#/$defs/…\"",
	"$recursiveAnchor":      "belongs to an older draft; refer with \"#/$defs/…\"",
	"$vocabulary":           "is for meta-schemas; remove it",
	"definitions":           "belongs to an older draft; write $defs",
	"dependencies":          "belongs to an older draft; write dependentRequired",
	"additionalItems":       "belongs to an older draft; write items",
	"nullable":              "is OpenAPI's; write \"type\": [\"string\", \"null\"]",
	"contentSchema":         "is never checked; say it in the description",
	"propertyOrdering":      "is Gemini's and is added by the build; remove it",
	"enumDescriptions":      "is not a standard keyword; say it in the description",
	"markdownDescription":   "is an editor's keyword; write description",
	"additional_properties": "is not a keyword; write additionalProperties",

	"prefixItems":       "does not exist in Gemini's form; use an object with one property for each position",
	"contains":          "does not exist in Gemini's form; make the required item a separate property",
	"minContains":       "belongs to contains, which does not exist in Gemini's form; remove it",
	"maxContains":       "belongs to contains, which does not exist in Gemini's form; remove it",
	"patternProperties": "does not exist in Gemini's form; use an array of objects with the properties key and value",
	"propertyNames":     "does not exist in Gemini's form, and a closed object lists its names; remove it",
	"dependentSchemas": "does not exist in Gemini's form; write the cases as anyOf, or check in the handler and say so " +
		"in the description",
	"not": "does not exist in Gemini's form; list the allowed values instead",
	"if": "does not exist in Gemini's form; write the cases as anyOf, or check in the handler and say so " +
		"in the description",
	"then": "belongs to if, which does not exist in Gemini's form; remove it",
	"else": "belongs to if, which does not exist in Gemini's form; remove it",
	"unevaluatedProperties": "depends on adjacent keywords, which the forms change; write \"additionalProperties\": false in the " +
		"object that lists the properties",
	"unevaluatedItems": "depends on adjacent keywords, which the forms change; use items",
}
