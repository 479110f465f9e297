// Package openaiwire is the part that servers of OpenAI's Realtime protocol (GA) share: the client's events with the
// rules for their fields, the session object and its updates, items, responses, the bodies of the server's events,
// errors and ids.
//
// Key sets, their order, limits and error texts follow the provider's documentation (developers.openai.com/api/docs/
// guides/realtime-websocket and the API reference of the realtime events, read 2026-11-20), the types of the SDKs of that
// day, and recorded sessions. A text marked (own) is written in the provider's style.
//
// Functions may be called concurrently; values may not be used concurrently while one is changed.
package openaiwire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Error is an error in the provider's terms. It is the answer to a request, or the content of an event.
type Error struct {
	// Status is the HTTP status of an answer.
	Status int
	// Type, Code and Param are OpenAI's fields; an empty Code or Param is sent as null.
	Type, Code, Param string
	Message           string
}

// Error returns the status and the message.
func (e *Error) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Status, e.Message) }

// Body is the body of an HTTP answer (https://developers.openai.com/api/docs/guides/error-codes, read 2026-11-20).
func (e *Error) Body() []byte {
	// Strings can always be encoded.
	b, _ := Object{"error", Object{
		"message", e.Message, "type", e.Type, "param", Nullable(e.Param), "code", Nullable(e.Code),
	}}.MarshalJSON()
	return b
}

// Nullable is a text in JSON: null if it is empty.
func Nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Invalid returns a 400 of type invalid_request_error.
func Invalid(code, param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: code, Param: param,
		Message: fmt.Sprintf(format, args...)}
}

// Missing is for a required parameter that is not there.
func Missing(param string) *Error {
	return Invalid("missing_required_parameter", param, "Missing required parameter: '%s'.", param)
}

// BadValue is for a value that is not among the supported ones.
func BadValue(param, value string, supported ...string) *Error {
	list := "'" + strings.Join(supported, "', '") + "'"
	if last := strings.LastIndex(list, ", "); len(supported) == 2 {
		list = list[:last] + " and" + list[last+1:]
	} else if last > 0 {
		list = list[:last] + ", and" + list[last+1:]
	}
	return Invalid("invalid_value", param, "Invalid value: '%s'. Supported values are: %s.", value, list)
}

// WrongType is for a value of the wrong JSON type.
func WrongType(param, want, got string) *Error {
	return Invalid("invalid_type", param, "Invalid type for '%s': expected %s, but got %s instead.", param, want, got)
}

// OutOfRange is for a number outside its limits (own).
func OutOfRange(param string, lo, hi, got float64) *Error {
	return Invalid("invalid_value", param, "Invalid value for '%s': expected a value between %g and %g, but got %g instead.",
		param, lo, hi, got)
}

// CommitEmpty is for a commit of less than 100 ms of audio.
func CommitEmpty(ms float64) *Error {
	return Invalid("input_audio_buffer_commit_empty", "",
		"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has %.2fms of audio.", ms)
}

// ActiveResponse is for a response.create while a response is active.
func ActiveResponse(id string) *Error {
	return Invalid("conversation_already_has_active_response", "",
		"Conversation already has an active response in progress: %s. Wait until the response is finished before creating a new one.", id)
}

// NotActive is for a response.cancel while no response is active.
func NotActive() *Error {
	return Invalid("response_cancel_not_active", "", "Cancellation failed: no active response found")
}

// InvalidAudio is for audio that is not base64 or no whole number of samples (own).
func InvalidAudio(path string) *Error {
	return Invalid("invalid_value", path, "Invalid '%s'. Expected base64-encoded audio bytes in the session's input format.", path)
}

// NoSuchItem is for an item that is not in the conversation (own).
func NoSuchItem(param, id string) *Error {
	return Invalid("item_not_found", param, "Item with item_id '%s' not found in the conversation.", id)
}

// DuplicateItem is for an item with the id of another one.
func DuplicateItem(id string) *Error {
	return Invalid("item_create_duplicate_id", "item.id", "An item with the id '%s' is in the conversation already.", id)
}

// NotSpeech is for the truncation of an item that is not speech of the model.
func NotSpeech() *Error {
	return Invalid("invalid_value", "item_id", "Only model output audio messages can be truncated")
}

// MissingKey is for a request without a key.
func MissingKey() *Error {
	return Invalid("missing_api_key", "",
		"You didn't provide an API key. Send it in an Authorization header: Authorization: Bearer YOUR_KEY.")
}

// NotJSON explains why data is not an event.
func NotJSON(data []byte) *Error {
	if !json.Valid(data) {
		return Invalid("invalid_json", "", "The event could not be parsed as JSON. Send one JSON object in each text message.")
	}
	if kind := KindOf(data); kind != "an object" {
		return Invalid("invalid_json", "", "The event must be a JSON object, but got %s instead.", kind)
	}
	return Invalid("invalid_type", "", "A field of the event has the wrong type.")
}

func transcriptionUpdate() *Error {
	return Invalid("invalid_value", "session.type",
		"Passing a transcription session update event to a realtime session is not allowed.")
}

func need(value, path string) *Error {
	if value == "" {
		return Missing(path)
	}
	return nil
}
