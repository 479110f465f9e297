package rest

import (
	"net/http"
	"regexp"
	"strings"
)

// chatModels are the models that the API knows: OpenAI's, as its Go client 3.95 lists them,
// with their dated snapshots, and Gemini's, which Google serves with the same API
// (https://ai.google.dev/gemini-api/docs/openai, read 2026-11-20).
var chatModels = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`gpt-3\.5-turbo(?:-16k)?`,
	`gpt-4(?:-32k|-turbo|-turbo-preview)?`,
	`gpt-4\.1(?:-mini|-nano)?`,
	`(?:chatgpt-4o|gpt-4o)(?:-mini)?(?:-search-preview)?`,
	`gpt-5(?:\.\d)?(?:-mini|-nano|-pro|-chat|-codex|-sol|-terra|-luna)?`,
	`gpt-6(?:\.\d)?-(?:sol|terra|luna|astra)`,
	`o[134](?:-mini|-pro|-preview)?`,
	`(?:models/)?gemini-\d(?:\.\d)?-(?:flash|flash-lite|pro)(?:-preview)?`,
}, "|") + `)(?:-latest|-\d{4}-\d{2}-\d{2}|-\d{4}|-\d{2}-\d{4})?$`)

// otherModels are models of other APIs.
var otherModels = regexp.MustCompile(`realtime|^text-embedding-|-image|^dall-e-|^tts-|^whisper|-transcribe|^imagen-|-live-`)

// checkModel refuses a name as the provider does. On Azure any name is accepted, because it is
// that of a deployment.
func checkModel(name string, azure bool) *Error {
	switch {
	case name == "":
		return Invalid("", "", "you must provide a model parameter")
	case azure, chatModels.MatchString(name) && !otherModels.MatchString(name):
		return nil
	case otherModels.MatchString(name):
		return &Error{Status: http.StatusNotFound, Type: "invalid_request_error", Param: "model",
			Message: "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?"}
	}
	return ModelNotFound(name)
}
