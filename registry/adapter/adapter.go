// Package adapter converts a tool's canonical parameter schema to the forms of the providers: OpenAI's flat form for
// realtime sessions, its nested form for chat, and Gemini's FunctionDeclaration.
//
// The canonical schema is JSON Schema, draft 2020-12, with additionalProperties false at every object level. The
// registry validates every call against it. So a form may accept more than the canonical schema, never less.
//
//	every instance that the canonical schema accepts is accepted by each form.
//
// All functions are pure, deterministic and safe for concurrent use, and follow only references inside the schema.
// They don't panic on parameters that the registry accepts. Members of results have a documented order, properties
// that of the schema's text.
//
// Sources: JSON Schema 2020-12 core and validation; OpenAI's realtime and chat references and Gemini's Schema and
// FunctionDeclaration (Live API and function calling reference), read 2026-11-20. Undocumented restrictions of
// servers are noted at each rule.
package adapter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"voicegw/registry/document"
)

// All returns the parameters in every form: [OpenAIParameters] for realtime sessions and chat completions,
// [GeminiParameters] for a FunctionDeclaration. The parameters must be valid for the registry
// (schema.CompileParameters), which isn't checked again. The error is [Problems] with those of all forms.
func All(canonical json.RawMessage) (openAI, gemini json.RawMessage, err error) {
	openAI, openAIErr := OpenAIParameters(canonical)
	gemini, geminiErr := GeminiParameters(canonical)
	var all Problems
	for _, err := range []error{openAIErr, geminiErr} {
		if list, ok := errors.AsType[Problems](err); ok {
			all = append(all, list...)
		} else if err != nil {
			return nil, nil, err
		}
	}
	if err := all.asError(); err != nil {
		return nil, nil, err
	}
	return openAI, gemini, nil
}

// TakesName reports whether every provider takes the name of an argument.
func TakesName(name string) bool { return geminiParam.MatchString(name) }

// geminiParam matches Gemini's parameter names (FunctionDeclaration, read 2026-11-20).
var geminiParam = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

func clip(s string) string { return document.Shorten(s, 80) }

// Problem is a reason why a schema has no form.
type Problem struct {
	// Path is the JSON Pointer (RFC 6901) of the schema within the canonical parameters; "" is the root.
	Path    string `json:"path"`
	Keyword string `json:"keyword"`
	Message string `json:"message"`
}

// String returns path, keyword and message on one line.
func (p Problem) String() string {
	where := cmp.Or(p.Path, "(root)")
	if p.Keyword == "" {
		return where + ": " + p.Message
	}
	return where + ": " + p.Keyword + ": " + p.Message
}

// Problems is the error of this package's functions: all distinct problems, sorted by path, keyword and message.
// Extract it with [errors.As].
type Problems []Problem

// Error returns a line for each problem.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p)+1)
	lines = append(lines, fmt.Sprintf("the tool's parameters have %d problem(s)", len(p)))
	for _, one := range p {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n\t")
}

// asError returns p sorted and without duplicates, because an inlined definition is visited for each reference; nil if
// it is empty.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(p)
}

type problems struct{ list Problems }

func (p *problems) add(path, keyword, format string, args ...any) {
	p.list = append(p.list, Problem{Path: path, Keyword: keyword, Message: fmt.Sprintf(format, args...)})
}

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
