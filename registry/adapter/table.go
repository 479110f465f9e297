package adapter

import (
	"slices"
)

// Treatment is what a form does with a keyword.
type Treatment string

// The treatments, from the best to the worst for an author.
const (
	// Kept as it is.
	Kept Treatment = "kept"
	// Rewritten with other keywords that accept the same.
	Rewritten Treatment = "rewritten"
	// Said in words in the description: the form is looser, the model still knows, and the
	// registry enforces it.
	Said Treatment = "said"
	// Dropped: it only annotates, or the form is looser in a way that cannot mislead the model.
	Dropped Treatment = "dropped"
	// Refused: otherwise the model could not know what to send.
	Refused Treatment = "refused"
)

// Keyword is one row of the table of keywords.
type Keyword struct {
	Name   string
	OpenAI Treatment
	Gemini Treatment
	// Reason says why, and what the treatment does; Mend says what an author should write
	// instead of the refused keyword.
	Reason string
	Mend   string

	holds   holding // the places of subschemas in its value
	applies typeSet // the types it constrains; 0: all, or it is not a constraint
}

// holding says which places in the value of a keyword hold subschemas.
type holding uint8

const (
	holdsNone holding = iota
	holdsSchema
	holdsList
	holdsMap
)

// Keywords returns the table: every keyword that a canonical schema may use, in the order
// in which OpenAI's form prints them. A keyword that is not in it is refused in every
// form, since nothing would check it; names that begin with "x-" are dropped.
func Keywords() []Keyword { return slices.Clone(table) }

func keyword(name string) (Keyword, bool) {
	i := slices.IndexFunc(table, func(k Keyword) bool { return k.Name == name })
	if i < 0 {
		return Keyword{}, false
	}
	return table[i], true
}

var table = []Keyword{
	{Name: "type", OpenAI: Kept, Gemini: Rewritten,
		Reason: "Gemini: one type in upper case; a list with null becomes nullable, several other types become anyOf. Without a type objects of any shape would be valid.",
		Mend:   "say the type"},
	{Name: "title", OpenAI: Kept, Gemini: Kept, Reason: "Each form has it."},
	{Name: "description", OpenAI: Kept, Gemini: Kept,
		Reason: "Gemini: a description of alternatives is copied into each."},
	{Name: "enum", OpenAI: Kept, Gemini: Rewritten,
		Reason: "Gemini takes non-empty strings only. Integers become up to 16 ranges, other numbers alternatives; a lone boolean is said.",
		Mend:   "list non-empty strings, or describe the value with properties or items"},
	{Name: "const", OpenAI: Rewritten, Gemini: Rewritten, Reason: "An enum of one value accepts the same."},
	{Name: "default", OpenAI: Kept, Gemini: Kept,
		Reason: "The registry applies it. Gemini: in the first alternative of its type, without null.",
		Mend:   "use a default that a float64 holds exactly"},
	{Name: "examples", OpenAI: Kept, Gemini: Rewritten, Reason: "Gemini has one example, the first that fits."},
	{Name: "deprecated", OpenAI: Kept, Gemini: Said, Reason: "Annotation."},
	{Name: "readOnly", OpenAI: Kept, Gemini: Dropped, Reason: "Annotation."},
	{Name: "writeOnly", OpenAI: Kept, Gemini: Dropped, Reason: "Annotation."},
	{Name: "format", OpenAI: Kept, Gemini: Rewritten, applies: typeString,
		Reason: "email, date-time, date, time, uri, uuid, ipv4, ipv6. Gemini takes date-time; the others are said.",
		Mend:   "use one of them, or a pattern"},
	{Name: "contentEncoding", OpenAI: Kept, Gemini: Said, applies: typeString, Reason: "Annotation."},
	{Name: "contentMediaType", OpenAI: Kept, Gemini: Said, applies: typeString, Reason: "Annotation."},
	{Name: "contentSchema", OpenAI: Refused, Gemini: Refused, holds: holdsSchema, applies: typeString,
		Reason: "The JSON inside a string is not checked.", Mend: "make the value an object instead of a string that holds one"},
	{Name: "pattern", OpenAI: Kept, Gemini: Kept, applies: typeString,
		Reason: "RE2 without its own extensions: see Patterns.",
		Mend:   "write it without them, or use an enum or a format"},
	{Name: "minLength", OpenAI: Kept, Gemini: Kept, applies: typeString, Reason: "Each form has it."},
	{Name: "maxLength", OpenAI: Kept, Gemini: Kept, applies: typeString, Reason: "Each form has it."},
	{Name: "minimum", OpenAI: Kept, Gemini: Kept, applies: typeNumber,
		Reason: "A float64 without rounding.", Mend: "use a bound that a float64 holds exactly"},
	{Name: "exclusiveMinimum", OpenAI: Kept, Gemini: Rewritten, applies: typeNumber,
		Reason: "Gemini: the next integer; for numbers the inclusive bound, and the exclusion is said.", Mend: "use a bound that a float64 holds exactly"},
	{Name: "maximum", OpenAI: Kept, Gemini: Kept, applies: typeNumber,
		Reason: "As minimum.", Mend: "use a bound that a float64 holds exactly"},
	{Name: "exclusiveMaximum", OpenAI: Kept, Gemini: Rewritten, applies: typeNumber,
		Reason: "As exclusiveMinimum.", Mend: "use a bound that a float64 holds exactly"},
	{Name: "multipleOf", OpenAI: Kept, Gemini: Said, applies: typeNumber, Reason: "A sentence describes it."},
	{Name: "items", OpenAI: Kept, Gemini: Kept, holds: holdsSchema, applies: typeArray,
		Reason: "Required in an array.", Mend: "say what the items are"},
	{Name: "prefixItems", OpenAI: Kept, Gemini: Refused, holds: holdsList, applies: typeArray,
		Reason: "Gemini's items are all alike.", Mend: "use an object with one property for each position"},
	{Name: "minItems", OpenAI: Kept, Gemini: Kept, applies: typeArray, Reason: "Each form has it."},
	{Name: "maxItems", OpenAI: Kept, Gemini: Kept, applies: typeArray, Reason: "Each form has it."},
	{Name: "uniqueItems", OpenAI: Kept, Gemini: Said, applies: typeArray, Reason: "A sentence describes it."},
	{Name: "contains", OpenAI: Kept, Gemini: Refused, holds: holdsSchema, applies: typeArray,
		Reason: "Gemini has no such keyword.", Mend: "make what must be there a property of its own"},
	{Name: "minContains", OpenAI: Kept, Gemini: Refused, applies: typeArray, Reason: "Belongs to contains.", Mend: "remove it with contains"},
	{Name: "maxContains", OpenAI: Kept, Gemini: Refused, applies: typeArray, Reason: "Belongs to contains.", Mend: "remove it with contains"},
	{Name: "properties", OpenAI: Kept, Gemini: Kept, holds: holdsMap, applies: typeObject,
		Reason: "In order, for Gemini as propertyOrdering. A property that is false is left out. Gemini refuses an object without properties below the root.",
		Mend:   "name the properties in that alphabet"},
	{Name: "required", OpenAI: Kept, Gemini: Kept, applies: typeObject,
		Reason: "Every name must be a property.", Mend: "add the property or remove the name"},
	{Name: "minProperties", OpenAI: Kept, Gemini: Kept, applies: typeObject, Reason: "Each form has it."},
	{Name: "maxProperties", OpenAI: Kept, Gemini: Kept, applies: typeObject, Reason: "Each form has it."},
	{Name: "additionalProperties", OpenAI: Kept, Gemini: Dropped, holds: holdsSchema, applies: typeObject,
		Reason: "Must be false in every object.",
		Mend:   "write \"additionalProperties\": false and list the properties"},
	{Name: "patternProperties", OpenAI: Kept, Gemini: Refused, holds: holdsMap, applies: typeObject,
		Reason: "Gemini's objects have named properties only.", Mend: "use an array of objects with the properties key and value"},
	{Name: "propertyNames", OpenAI: Kept, Gemini: Refused, holds: holdsSchema, applies: typeObject,
		Reason: "Gemini has no such keyword, and a closed object lists its names anyway.", Mend: "remove it"},
	{Name: "dependentRequired", OpenAI: Kept, Gemini: Said, applies: typeObject, Reason: "A sentence describes it."},
	{Name: "dependentSchemas", OpenAI: Kept, Gemini: Refused, holds: holdsMap, applies: typeObject,
		Reason: "Gemini has no conditions.", Mend: "write the cases as anyOf, or check in the handler and say so in the description"},
	{Name: "anyOf", OpenAI: Kept, Gemini: Kept, holds: holdsList,
		Reason: "Refused at the root. Gemini: sibling keywords move into each alternative.",
		Mend:   "at the root: describe the properties one by one, check in the handler and say so in the description"},
	{Name: "oneOf", OpenAI: Kept, Gemini: Rewritten, holds: holdsList,
		Reason: "Refused at the root. Gemini: anyOf if the alternatives exclude each other (by type, values or a required property), else refused.",
		Mend:   "give each alternative a required property with another const, or write anyOf if overlap is right"},
	{Name: "allOf", OpenAI: Rewritten, Gemini: Rewritten, holds: holdsList,
		Reason: "Merged. Parts that do not merge, such as two patterns, are kept for OpenAI below the root, else refused.",
		Mend:   "write the parts as one schema"},
	{Name: "not", OpenAI: Kept, Gemini: Refused, holds: holdsSchema,
		Reason: "Gemini has no such keyword, and OpenAI's servers take none at the root.", Mend: "say what is allowed instead of what is not"},
	{Name: "if", OpenAI: Kept, Gemini: Refused, holds: holdsSchema,
		Reason: "Gemini has no conditions.", Mend: "write the cases as anyOf, or check in the handler and say so in the description"},
	{Name: "then", OpenAI: Kept, Gemini: Refused, holds: holdsSchema, Reason: "Belongs to if.", Mend: "remove it with if"},
	{Name: "else", OpenAI: Kept, Gemini: Refused, holds: holdsSchema, Reason: "Belongs to if.", Mend: "remove it with if"},
	{Name: "$ref", OpenAI: Rewritten, Gemini: Rewritten,
		Reason: "Inlined. Only #/$defs/name, without recursion.",
		Mend:   "copy the definition into $defs"},
	{Name: "$defs", OpenAI: Rewritten, Gemini: Rewritten, holds: holdsMap, Reason: "Inlined where referred to."},
	{Name: "definitions", OpenAI: Refused, Gemini: Refused, holds: holdsMap, Reason: "The old name of $defs.", Mend: "write $defs"},
	{Name: "$anchor", OpenAI: Refused, Gemini: Refused, Reason: "A second way to name what $defs names.", Mend: "refer with #/$defs/name"},
	{Name: "$schema", OpenAI: Dropped, Gemini: Dropped,
		Reason: "Only draft 2020-12.", Mend: "remove it"},
	{Name: "$id", OpenAI: Refused, Gemini: Refused,
		Reason: "It would change the address of references.", Mend: "remove it"},
	{Name: "$comment", OpenAI: Dropped, Gemini: Dropped, Reason: "For authors, not for models."},
	{Name: "$dynamicRef", OpenAI: Refused, Gemini: Refused, Reason: "Its meaning depends on the reference.", Mend: "use $ref"},
	{Name: "$dynamicAnchor", OpenAI: Refused, Gemini: Refused, Reason: "Belongs to $dynamicRef.", Mend: "use $anchor"},
	{Name: "$recursiveRef", OpenAI: Refused, Gemini: Refused, Reason: "Recursion has no end when inlined.", Mend: "describe a fixed number of levels"},
	{Name: "$recursiveAnchor", OpenAI: Refused, Gemini: Refused, Reason: "Belongs to $recursiveRef.", Mend: "remove it"},
	{Name: "$vocabulary", OpenAI: Refused, Gemini: Refused, Reason: "For meta-schemas only.", Mend: "remove it"},
	{Name: "unevaluatedProperties", OpenAI: Refused, Gemini: Refused, holds: holdsSchema, applies: typeObject,
		Reason: "Inlining and merging would change its meaning.", Mend: "write \"additionalProperties\": false in the object that lists the properties"},
	{Name: "unevaluatedItems", OpenAI: Refused, Gemini: Refused, holds: holdsSchema, applies: typeArray,
		Reason: "Inlining and merging would change its meaning.", Mend: "use items"},
	{Name: "dependencies", OpenAI: Refused, Gemini: Refused, Reason: "Not in draft 2020-12: nothing checks it.", Mend: "use dependentRequired"},
	{Name: "additionalItems", OpenAI: Refused, Gemini: Refused, Reason: "Not in draft 2020-12: nothing checks it.", Mend: "use items"},
	{Name: "nullable", OpenAI: Refused, Gemini: Refused, Reason: "OpenAPI, not JSON Schema: nothing checks it.", Mend: "write \"type\": [\"string\", \"null\"]"},
	{Name: "example", OpenAI: Refused, Gemini: Refused, Reason: "OpenAPI, not JSON Schema.", Mend: "write \"examples\": […]"},
}
