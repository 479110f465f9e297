package adapter

import (
	"slices"
)

// Treatment is how a form treats a keyword.
type Treatment string

// Treatments, from best to worst for an author.
const (
	// Kept unchanged.
	Kept Treatment = "kept"
	// Rewritten with other keywords that accept the same.
	Rewritten Treatment = "rewritten"
	// Said in the description: the form is looser, but the model knows, and the registry enforces it.
	Said Treatment = "said"
	// Dropped because it only annotates, or the form is looser without misleading the model.
	Dropped Treatment = "dropped"
)

// Keyword is a row of the table of keywords.
type Keyword struct {
	Name   string
	OpenAI Treatment
	Gemini Treatment
	// Reason explains the treatment; Mend tells an author what to write instead of a refused keyword.
	Reason string
	Mend   string

	holds   holding // the places of subschemas in its value
	applies typeSet // the types it constrains; 0 for all, or for no constraint
}

type holding uint8

const (
	holdsNone holding = iota
	holdsSchema
	holdsList
	holdsMap
)

// Keywords returns all keywords that a canonical schema may use, in the order of OpenAI's form. Other keywords are
// refused in every form, because nothing would check them; names that start with "x-" are dropped.
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
		Reason: "Gemini: one type in upper case; a list with null becomes nullable, several other types become anyOf. Without " +
			"a type objects of any shape would be valid.",
		Mend: "say the type"},
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
	{Name: "pattern", OpenAI: Kept, Gemini: Kept, applies: typeString,
		Reason: "RE2 without its own extensions: see Patterns.",
		Mend:   "write it without them, or use an enum or a format"},
	{Name: "minLength", OpenAI: Kept, Gemini: Kept, applies: typeString, Reason: "Each form has it."},
	{Name: "maxLength", OpenAI: Kept, Gemini: Kept, applies: typeString, Reason: "Each form has it."},
	{Name: "minimum", OpenAI: Kept, Gemini: Kept, applies: typeNumber,
		Reason: "A float64 without rounding.", Mend: "use a bound that a float64 holds exactly"},
	{Name: "exclusiveMinimum", OpenAI: Kept, Gemini: Rewritten, applies: typeNumber,
		Reason: "Gemini: the next integer; for numbers the inclusive bound, and the exclusion is said.",
		Mend:   "use a bound that a float64 holds exactly"},
	{Name: "maximum", OpenAI: Kept, Gemini: Kept, applies: typeNumber,
		Reason: "As minimum.", Mend: "use a bound that a float64 holds exactly"},
	{Name: "exclusiveMaximum", OpenAI: Kept, Gemini: Rewritten, applies: typeNumber,
		Reason: "As exclusiveMinimum.", Mend: "use a bound that a float64 holds exactly"},
	{Name: "multipleOf", OpenAI: Kept, Gemini: Said, applies: typeNumber, Reason: "A sentence describes it."},
	{Name: "items", OpenAI: Kept, Gemini: Kept, holds: holdsSchema, applies: typeArray,
		Reason: "Required in an array.", Mend: "say what the items are"},
	{Name: "minItems", OpenAI: Kept, Gemini: Kept, applies: typeArray, Reason: "Each form has it."},
	{Name: "maxItems", OpenAI: Kept, Gemini: Kept, applies: typeArray, Reason: "Each form has it."},
	{Name: "uniqueItems", OpenAI: Kept, Gemini: Said, applies: typeArray, Reason: "A sentence describes it."},
	{Name: "properties", OpenAI: Kept, Gemini: Kept, holds: holdsMap, applies: typeObject,
		Reason: "In order, for Gemini as propertyOrdering. A property that is false is left out. Gemini refuses an object " +
			"without properties below the root.",
		Mend: "name the properties in that alphabet"},
	{Name: "required", OpenAI: Kept, Gemini: Kept, applies: typeObject,
		Reason: "Every name must be a property.", Mend: "add the property or remove the name"},
	{Name: "minProperties", OpenAI: Kept, Gemini: Kept, applies: typeObject, Reason: "Each form has it."},
	{Name: "maxProperties", OpenAI: Kept, Gemini: Kept, applies: typeObject, Reason: "Each form has it."},
	{Name: "additionalProperties", OpenAI: Kept, Gemini: Dropped, holds: holdsSchema, applies: typeObject,
		Reason: "Must be false in every object.",
		Mend:   "write \"additionalProperties\": false and list the properties"},
	{Name: "dependentRequired", OpenAI: Kept, Gemini: Said, applies: typeObject, Reason: "A sentence describes it."},
	{Name: "anyOf", OpenAI: Kept, Gemini: Kept, holds: holdsList,
		Reason: "Refused at the root. Gemini: sibling keywords move into each alternative.",
		Mend:   "at the root: describe the properties one by one, check in the handler and say so in the description"},
	{Name: "oneOf", OpenAI: Kept, Gemini: Rewritten, holds: holdsList,
		Reason: "Refused at the root. Gemini: anyOf if the alternatives exclude each other (by type, values or a required " +
			"property), else refused.",
		Mend: "give each alternative a required property with another const, or write anyOf if overlap is right"},
	{Name: "allOf", OpenAI: Rewritten, Gemini: Rewritten, holds: holdsList,
		Reason: "Merged. Parts that do not merge, such as two patterns, are kept for OpenAI below the root, else refused.",
		Mend:   "write the parts as one schema"},
	{Name: "$ref", OpenAI: Rewritten, Gemini: Rewritten,
		Reason: "Inlined. Only #/$defs/name, without recursion.",
		Mend:   "copy the definition into $defs"},
	{Name: "$defs", OpenAI: Rewritten, Gemini: Rewritten, holds: holdsMap, Reason: "Inlined where referred to."},
	{Name: "$schema", OpenAI: Dropped, Gemini: Dropped,
		Reason: "Only draft 2020-12.", Mend: "remove it"},
	{Name: "$comment", OpenAI: Dropped, Gemini: Dropped, Reason: "For authors, not for models."},
}
