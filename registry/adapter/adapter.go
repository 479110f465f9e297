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
	return openAI, gemini, all.asError()
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

func (p *Problems) add(path, keyword, format string, args ...any) {
	*p = append(*p, Problem{Path: path, Keyword: keyword, Message: fmt.Sprintf(format, args...)})
}
