package openai

import (
	"fmt"
	"strings"

	"voicegw/sim/rest"
	"voicegw/sim/wire"
)

// apiError is the error object of an error event, in the provider's order of keys.
type apiError struct {
	Type    string  `json:"type"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
	EventID *string `json:"event_id"`
}

// invalid returns an invalid_request_error. An empty param is sent as null.
func invalid(code, param, format string, args ...any) *apiError {
	e := &apiError{Type: "invalid_request_error", Code: code, Message: fmt.Sprintf(format, args...)}
	if param != "" {
		e.Param = &param
	}
	return e
}

// Texts below that appear in recordings and reports are the provider's, word for word;
// those marked (own) are written in its style.

func missingParameter(param string) *apiError {
	return invalid("missing_required_parameter", param, "Missing required parameter: '%s'.", param)
}

func unknownParameter(param string) *apiError {
	return invalid("unknown_parameter", param, "Unknown parameter: '%s'.", param)
}

func invalidValue(param, value string, supported ...string) *apiError {
	return invalid("invalid_value", param, "Invalid value: '%s'. Supported values are: %s.", value, quoteList(supported))
}

func invalidType(param, want, got string) *apiError {
	return invalid("invalid_type", param, "Invalid type for '%s': expected %s, but got %s instead.", param, want, got)
}

// outOfRange is (own).
func outOfRange(param string, lo, hi, got float64) *apiError {
	return invalid("invalid_value", param, "Invalid value for '%s': expected a value between %g and %g, but got %g instead.",
		param, lo, hi, got)
}

func commitEmpty(ms float64) *apiError {
	return invalid("input_audio_buffer_commit_empty", "",
		"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has %.2fms of audio.", ms)
}

func activeResponse(id string) *apiError {
	return invalid("conversation_already_has_active_response", "",
		"Conversation already has an active response in progress: %s. Wait until the response is finished before creating a new one.", id)
}

func cancelNotActive() *apiError {
	return invalid("response_cancel_not_active", "", "Cancellation failed: no active response found")
}

func alreadyShorter(has, wanted int) *apiError {
	return invalid("invalid_value", "", "Audio content of %dms is already shorter than %dms", has, wanted)
}

func cannotUpdateVoice() *apiError {
	return invalid("cannot_update_voice", "session.audio.output.voice",
		"Cannot update a conversation's voice if assistant audio is present.")
}

func transcriptionUpdate() *apiError {
	return invalid("invalid_value", "session.type", "Passing a transcription session update event to a realtime session is not allowed.")
}

const expiredText = "Your session hit the maximum duration of 60 minutes."

func sessionExpired() *apiError { return invalid("session_expired", "", expiredText) }

// noSuchItem is (own).
func noSuchItem(param, id string) *apiError {
	return invalid("item_not_found", param, "Item with item_id '%s' not found in the conversation.", id)
}

type refusal struct {
	closeCode int
	err       *apiError
}

func (r *refusal) reason() string { return r.err.Type + "." + r.err.Code }

// refuseKey returns the provider's error for a key, or nil if the key is accepted.
func refuseKey(key string) *refusal {
	switch wire.ClassifyKey(key) {
	case wire.KeyInvalid, wire.KeyExpired:
		e := rest.OpenAIKey(key)
		return &refusal{3000, invalid(e.Code, "", "%s", e.Message)}
	case wire.KeyOK, wire.KeyMissing, wire.KeyQuota:
	}
	return nil
}

func refuseBeta() *refusal {
	return &refusal{4000, invalid("beta_api_shape_disabled", "",
		"The Realtime Beta API is no longer supported. Please use /v1/realtime for the GA API.")}
}

func refuseIntent(intent string) *refusal {
	return &refusal{4000, invalid("invalid_intent", "intent", "The intent '%s' is not simulated; connect with ?model= instead.", intent)}
}

// refuseModel is for a model that is unknown or not a realtime model.
func refuseModel(name string) *refusal {
	switch {
	case name == "":
		return &refusal{4000, invalid("missing_model", "model", "Missing required parameter: 'model'.")}
	case strings.HasPrefix(name, "gpt-live-"):
		return &refusal{4000, invalid("invalid_model", "model", "Model \"%s\" is not supported in realtime mode.", name)}
	}
	return &refusal{4000, invalid("model_not_found", "model", "The model `%s` does not exist or you do not have access to it.", name)}
}

// quoteList returns "'a', 'b', and 'c'", as the provider lists values.
func quoteList(values []string) string {
	q := make([]string, len(values))
	for i, v := range values {
		q[i] = "'" + v + "'"
	}
	switch len(q) {
	case 0:
		return ""
	case 1:
		return q[0]
	case 2:
		return q[0] + " and " + q[1]
	}
	return strings.Join(q[:len(q)-1], ", ") + ", and " + q[len(q)-1]
}
