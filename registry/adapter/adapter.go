package adapter

import (
	"encoding/json"
	"errors"
	"regexp"

	"voicegw/registry/document"
)

// All returns the parameters in every form: [OpenAIParameters] for realtime sessions and chat completions,
// [GeminiParameters] for a FunctionDeclaration. The parameters must be valid for the registry
// (schema.CompileParameters), which isn't checked again. The error is [Problems] with those of all forms.
func All(canonical json.RawMessage) (openAI, gemini json.RawMessage, err error) {
	openAI, openAIErr := OpenAIParameters(canonical)
	gemini, geminiErr := GeminiParameters(canonical)
	if err := append(problemsOf(openAIErr), problemsOf(geminiErr)...).asError(); err != nil {
		return nil, nil, err
	}
	return openAI, gemini, nil
}

// geminiParam matches Gemini's parameter names (FunctionDeclaration, read 2026-11-20).
var geminiParam = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

func problemsOf(err error) Problems {
	var list Problems
	if err != nil && !errors.As(err, &list) {
		return Problems{{Message: err.Error()}}
	}
	return list
}

func clip(s string) string { return document.Shorten(s, 80) }
