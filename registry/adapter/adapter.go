package adapter

import (
	"encoding/json"
	"errors"
	"regexp"

	"voicegw/registry/document"
)

// Forms are the parameters of a tool in each provider's form.
type Forms struct {
	// OpenAI is the form of realtime sessions and of chat completions; see [OpenAIParameters].
	OpenAI json.RawMessage
	// Gemini is the form of a FunctionDeclaration; see [GeminiParameters].
	Gemini json.RawMessage
}

// All returns the parameters in every form. They must be parameters that the registry accepts
// (schema.CompileParameters): what it refuses is not looked for again, and such parameters may
// get a form. Its error is [Problems] and lists the problems of all forms together.
func All(canonical json.RawMessage) (Forms, error) {
	openAI, openAIErr := OpenAIParameters(canonical)
	gemini, geminiErr := GeminiParameters(canonical)
	if err := append(problemsOf(openAIErr), problemsOf(geminiErr)...).asError(); err != nil {
		return Forms{}, err
	}
	return Forms{OpenAI: openAI, Gemini: gemini}, nil
}

// geminiParam matches the name of a parameter that Gemini accepts (FunctionDeclaration, read
// 2026-11-20).
var geminiParam = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// problemsOf returns the list inside an error of this package.
func problemsOf(err error) Problems {
	var list Problems
	if err != nil && !errors.As(err, &list) {
		return Problems{{Message: err.Error()}}
	}
	return list
}

// clip shortens an author's text for a message.
func clip(s string) string { return document.Shorten(s, 80) }
