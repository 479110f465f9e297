package adapter_test

import (
	"slices"
	"testing"

	"voicegw/registry/document"
)

// treatment is a form's handling of a keyword.
type treatment string

// The treatments, from best to worst for an author. Rewritten keywords accept the same values. A description makes
// the form looser, but the model knows the limit, and the registry enforces it.
const (
	kept      treatment = "kept"
	rewritten treatment = "rewritten"
	said      treatment = "said"
	dropped   treatment = "dropped"
)

// row is a row of the table of keywords in docs/tool-schemas.md.
type row struct {
	name           string
	openAI, gemini treatment
	reason         string
	limited        bool // not every value is accepted
}

// keywords are the promises to authors.
var keywords = []row{
	{name: "type", openAI: kept, gemini: rewritten,
		reason: "Gemini: one type in upper case; a list with null becomes nullable, several other types become anyOf. Without " +
			"a type objects of any shape would be valid.", limited: true},
	{name: "title", openAI: kept, gemini: kept, reason: "Each form has it."},
	{name: "description", openAI: kept, gemini: kept,
		reason: "Gemini: a description of alternatives is copied into each."},
	{name: "enum", openAI: kept, gemini: rewritten,
		reason: "Gemini takes non-empty strings only. Integers become up to 16 ranges, other numbers alternatives; a lone boolean is said.", limited: true},
	{name: "const", openAI: rewritten, gemini: rewritten, reason: "An enum of one value accepts the same."},
	{name: "default", openAI: kept, gemini: kept,
		reason: "The registry applies it. Gemini: in the first alternative of its type, without null.", limited: true},
	{name: "examples", openAI: kept, gemini: rewritten, reason: "Gemini has one example, the first that fits."},
	{name: "deprecated", openAI: kept, gemini: said, reason: "Annotation."},
	{name: "readOnly", openAI: kept, gemini: dropped, reason: "Annotation."},
	{name: "writeOnly", openAI: kept, gemini: dropped, reason: "Annotation."},
	{name: "format", openAI: kept, gemini: rewritten,
		reason: "email, date-time, date, time, uri, uuid, ipv4, ipv6. Gemini takes date-time; the others are said.", limited: true},
	{name: "contentEncoding", openAI: kept, gemini: said, reason: "Annotation."},
	{name: "contentMediaType", openAI: kept, gemini: said, reason: "Annotation."},
	{name: "pattern", openAI: kept, gemini: kept,
		reason: "RE2 without its own extensions: see Patterns.", limited: true},
	{name: "minLength", openAI: kept, gemini: kept, reason: "Each form has it."},
	{name: "maxLength", openAI: kept, gemini: kept, reason: "Each form has it."},
	{name: "minimum", openAI: kept, gemini: kept,
		reason: "A float64 without rounding.", limited: true},
	{name: "exclusiveMinimum", openAI: kept, gemini: rewritten,
		reason: "Gemini: the next integer; for numbers the inclusive bound, and the exclusion is said.", limited: true},
	{name: "maximum", openAI: kept, gemini: kept,
		reason: "As minimum.", limited: true},
	{name: "exclusiveMaximum", openAI: kept, gemini: rewritten,
		reason: "As exclusiveMinimum.", limited: true},
	{name: "multipleOf", openAI: kept, gemini: said, reason: "A sentence describes it."},
	{name: "items", openAI: kept, gemini: kept,
		reason: "Required in an array.", limited: true},
	{name: "minItems", openAI: kept, gemini: kept, reason: "Each form has it."},
	{name: "maxItems", openAI: kept, gemini: kept, reason: "Each form has it."},
	{name: "uniqueItems", openAI: kept, gemini: said, reason: "A sentence describes it."},
	{name: "properties", openAI: kept, gemini: kept,
		reason: "In order, for Gemini as propertyOrdering. A property that is false is left out. Gemini refuses an object " +
			"without properties below the root.", limited: true},
	{name: "required", openAI: kept, gemini: kept,
		reason: "Every name must be a property.", limited: true},
	{name: "minProperties", openAI: kept, gemini: kept, reason: "Each form has it."},
	{name: "maxProperties", openAI: kept, gemini: kept, reason: "Each form has it."},
	{name: "additionalProperties", openAI: kept, gemini: dropped,
		reason: "Must be false in every object.", limited: true},
	{name: "dependentRequired", openAI: kept, gemini: said, reason: "A sentence describes it."},
	{name: "anyOf", openAI: kept, gemini: kept,
		reason: "Refused at the root. Gemini: sibling keywords move into each alternative.", limited: true},
	{name: "oneOf", openAI: kept, gemini: rewritten,
		reason: "Refused at the root. Gemini: anyOf if the alternatives exclude each other (by type, values or a required " +
			"property), else refused.", limited: true},
	{name: "allOf", openAI: rewritten, gemini: rewritten,
		reason: "Merged. Parts that do not merge, such as two patterns, are kept for OpenAI below the root, else refused.", limited: true},
	{name: "$ref", openAI: rewritten, gemini: rewritten,
		reason: "Inlined. Only #/$defs/name, without recursion.", limited: true},
	{name: "$defs", openAI: rewritten, gemini: rewritten, reason: "Inlined where referred to."},
	{name: "$schema", openAI: dropped, gemini: dropped,
		reason: "Only draft 2020-12.", limited: true},
	{name: "$comment", openAI: dropped, gemini: dropped, reason: "For authors, not for models."},
}

func TestEveryKeywordHasARow(t *testing.T) {
	var names []string
	for _, k := range keywords {
		names = append(names, k.name)
	}
	var known []string
	for _, k := range document.Keywords {
		known = append(known, k.Name)
	}
	if !slices.Equal(names, known) {
		t.Errorf("the rows are %v, but the keywords %v", names, known)
	}
}
