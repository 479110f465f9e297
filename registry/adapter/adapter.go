package adapter

import (
	"encoding/json"
	"errors"
	"regexp"

	"voicegw/registry/document"
)

// All returns the parameters in every form: [OpenAIParameters] for realtime sessions and for chat completions,
// [GeminiParameters] for a FunctionDeclaration. They must be parameters that the registry accepts
// (schema.CompileParameters): what it refuses is not looked for again, and such parameters may
// get a form. Its error is [Problems] and lists the problems of all forms together.
func All(canonical json.RawMessage) (openAI, gemini json.RawMessage, err error) {
	openAI, openAIErr := OpenAIParameters(canonical)
	gemini, geminiErr := GeminiParameters(canonical)
	if err := append(problemsOf(openAIErr), problemsOf(geminiErr)...).asError(); err != nil {
		return nil, nil, err
	}
	return openAI, gemini, nil
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
