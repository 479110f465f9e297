package adapter

import (
	"encoding/json"
	"errors"
	"regexp"
	"unicode/utf8"
)

// Declaration is a tool as the registry knows it.
type Declaration struct {
	// Name is the tool's id. OpenAI takes [A-Za-z0-9_-], 1 to 64 characters; Gemini
	// [A-Za-z_][A-Za-z0-9_.:-]*, 1 to 128.
	Name string
	// Description is what the model reads about the tool. Empty is left out.
	Description string
	// Parameters is the canonical schema. It is not changed.
	Parameters json.RawMessage
	// NonBlocking says that the model need not wait for the result. It is in no form
	// made here: which models know it is the transport's to say (Gemini's "behavior").
	NonBlocking bool
}

// Forms is a declaration in every form.
type Forms struct {
	OpenAIRealtime json.RawMessage
	OpenAIChat     json.RawMessage
	Gemini         json.RawMessage
}

// All makes every form. Its error lists the problems of all forms together, so that one
// build shows an author everything.
func All(d Declaration) (Forms, error) {
	openAI, openAIErr := OpenAIParameters(d.Parameters)
	gemini, geminiErr := GeminiParameters(d.Parameters)
	found := append(checkOpenAI(d), checkGemini(d)...)
	found = append(append(found, problemsOf(openAIErr)...), problemsOf(geminiErr)...)
	if err := found.asError(); err != nil {
		return Forms{}, err
	}
	return Forms{OpenAIRealtime: flat(d, openAI), OpenAIChat: nested(d, openAI), Gemini: function(d, gemini, "")}, nil
}

// OpenAIRealtime gives the flat form of a realtime session: type ("function"), name,
// description, parameters, in this order. The error is [Problems].
func OpenAIRealtime(d Declaration) (json.RawMessage, error) {
	schema, err := OpenAIParameters(d.Parameters)
	if err := append(checkOpenAI(d), problemsOf(err)...).asError(); err != nil {
		return nil, err
	}
	return flat(d, schema), nil
}

// OpenAIChat gives the nested form of chat completions: type ("function") and function
// (name, description, parameters), in this order. The error is [Problems].
func OpenAIChat(d Declaration) (json.RawMessage, error) {
	schema, err := OpenAIParameters(d.Parameters)
	if err := append(checkOpenAI(d), problemsOf(err)...).asError(); err != nil {
		return nil, err
	}
	return nested(d, schema), nil
}

// Gemini gives a FunctionDeclaration: name, description, parameters, in this order.
// Parameters are left out for a tool that takes none, as its reference asks. "behavior"
// is left to the transport. The error is [Problems].
func Gemini(d Declaration) (json.RawMessage, error) {
	schema, err := GeminiParameters(d.Parameters)
	if err := append(checkGemini(d), problemsOf(err)...).asError(); err != nil {
		return nil, err
	}
	return function(d, schema, ""), nil
}

// OpenAIParameters gives the parameter schema of both OpenAI forms: plain JSON Schema
// that accepts exactly what the canonical one accepts, with references inlined and allOf
// merged where that is possible. Keywords come in the order of [Keywords]; members of
// properties in the order of the schema's text. The error is [Problems].
func OpenAIParameters(canonical json.RawMessage) (json.RawMessage, error) {
	return openAIForm(canonical)
}

// GeminiParameters gives a Schema of Gemini: upper-case types, propertyOrdering in the
// order of the schema's text. Members come as type, title, description, nullable, format,
// enum, default, example, pattern, minLength, maxLength, minimum, maximum, minItems,
// maxItems, items, minProperties, maxProperties, properties, propertyOrdering, required;
// a schema of alternatives has anyOf and no other member, since the server takes no
// others beside it. It is nil, without error, for an object without properties. The
// error is [Problems].
func GeminiParameters(canonical json.RawMessage) (json.RawMessage, error) {
	return geminiForm(canonical)
}

var (
	// OpenAI's function name (chat reference, "name", read 2026-11-20).
	openAIName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	// Gemini's function and parameter names (FunctionDeclaration, read 2026-11-20).
	geminiName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)
	geminiParam = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

func checkOpenAI(d Declaration) Problems {
	return checkName(d, openAIName, "OpenAI", "letters, digits, _ and -, at most 64")
}

func checkGemini(d Declaration) Problems {
	return checkName(d, geminiName, "Gemini", "a letter or _ first, then letters, digits and _ . : -, at most 128")
}

func checkName(d Declaration, allowed *regexp.Regexp, form, rule string) Problems {
	var p problems
	if !allowed.MatchString(d.Name) {
		p.add("", "name", "%s does not take the name %q; use %s", form, clip(d.Name), rule)
	}
	if !utf8.ValidString(d.Description) {
		p.add("", "description", "the tool's description is not UTF-8; save the file as UTF-8")
	}
	return p.list
}

func flat(d Declaration, schema json.RawMessage) json.RawMessage {
	return function(d, schema, "function")
}

func nested(d Declaration, schema json.RawMessage) json.RawMessage {
	return newObject("", "type", "function", "function", function(d, schema, "")).encode()
}

// function lays out a declaration; kind is left out when empty, as are an empty
// description and no schema.
func function(d Declaration, schema json.RawMessage, kind string) json.RawMessage {
	o := newObject("")
	if kind != "" {
		o.set("type", kind)
	}
	o.set("name", d.Name)
	if d.Description != "" {
		o.set("description", d.Description)
	}
	if schema != nil {
		o.set("parameters", schema)
	}
	return o.encode()
}

// problemsOf takes the list out of an error of this package.
func problemsOf(err error) Problems {
	var list Problems
	if err != nil && !errors.As(err, &list) {
		return Problems{{Message: err.Error()}}
	}
	return list
}

// clip shortens text of strangers for a message.
func clip(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
