package openai

import (
	"strings"

	"voicegw/sim/rest"
	"voicegw/sim/wire"
)

// Texts below that appear in recordings and reports are the provider's, word for word;
// those marked (own) are written in its style.

// outOfRange is (own).
func outOfRange(param string, lo, hi, got float64) *rest.Error {
	return rest.Invalid("invalid_value", param, "Invalid value for '%s': expected a value between %g and %g, but got %g instead.",
		param, lo, hi, got)
}

func commitEmpty(ms float64) *rest.Error {
	return rest.Invalid("input_audio_buffer_commit_empty", "",
		"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has %.2fms of audio.", ms)
}

func activeResponse(id string) *rest.Error {
	return rest.Invalid("conversation_already_has_active_response", "",
		"Conversation already has an active response in progress: %s. Wait until the response is finished before creating a new one.", id)
}

func transcriptionUpdate() *rest.Error {
	return rest.Invalid("invalid_value", "session.type", "Passing a transcription session update event to a realtime session is not allowed.")
}

const expiredText = "Your session hit the maximum duration of 60 minutes."

// noSuchItem is (own).
func noSuchItem(param, id string) *rest.Error {
	return rest.Invalid("item_not_found", param, "Item with item_id '%s' not found in the conversation.", id)
}

type refusal struct {
	closeCode int
	err       *rest.Error
}

func (r *refusal) reason() string { return r.err.Type + "." + r.err.Code }

// refuseKey returns the provider's error for a key, or nil if the key is accepted.
func refuseKey(key string) *refusal {
	if class := wire.ClassifyKey(key); class == wire.KeyInvalid || class == wire.KeyExpired {
		return &refusal{3000, rest.OpenAIKey(key)}
	}
	return nil
}

func refuseModel(name string) *refusal {
	switch {
	case name == "":
		return &refusal{4000, rest.Invalid("missing_model", "model", "Missing required parameter: 'model'.")}
	case strings.HasPrefix(name, "gpt-live-"):
		return &refusal{4000, rest.Invalid("invalid_model", "model", "Model \"%s\" is not supported in realtime mode.", name)}
	}
	return &refusal{4000, rest.Invalid("model_not_found", "model", "The model `%s` does not exist or you do not have access to it.", name)}
}
