package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"voicegw/internal/openaiwire"
	"voicegw/sim/wire"
)

// Error is an error response, in the terms of both providers.
type Error = openaiwire.Error

func inRange[T int | float64](param string, v *T, lo, hi T) *Error {
	kind := "integer"
	if _, is := any(lo).(float64); is {
		kind = "decimal"
	}
	switch {
	case v == nil:
	case *v < lo:
		return openaiwire.Invalid(kind+"_below_min_value", param,
			"Invalid '%s': %s below minimum value. Expected a value >= %v, but got %v instead.", param, kind, lo, *v)
	case *v > hi:
		return openaiwire.Invalid(kind+"_above_max_value", param,
			"Invalid '%s': %s above maximum value. Expected a value <= %v, but got %v instead.", param, kind, hi, *v)
	}
	return nil
}

func emptyArray(param string) *Error {
	return openaiwire.Invalid("empty_array", param,
		"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

func tooLong(param string, most, n int) *Error {
	return openaiwire.Invalid("array_above_max_length", param, "Invalid '%s': array too long. Expected an array with maximum length %d, "+
		"but got an array with length %d instead.", param, most, n)
}

func noModel() *Error { return openaiwire.Invalid("", "", "you must provide a model parameter") }

// Dialect writes errors in a provider's form.
type Dialect func(*Error) []byte

// OpenAI writes the error object of OpenAI's REST APIs.
func OpenAI(e *Error) []byte { return e.Body() }

// Google writes the error object of Google's APIs (https://cloud.google.com/apis/design/errors, read 2026-11-20).
func Google(e *Error) []byte {
	type object struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	}
	b, err := json.Marshal(map[string]object{"error": {e.Status, e.Message, wire.StatusName(e.Status)}})
	if err != nil { // strings and numbers can always be encoded
		return []byte(`{"error":{}}`)
	}
	return b
}

// Refuse answers a request with an error, before there is an exchange.
func Refuse(w http.ResponseWriter, d Dialect, e *Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(d(e)) // fails only if the client is gone
}

// OpenAIKey returns OpenAI's error for a key, or nil if the key is accepted.
func OpenAIKey(key string) *Error {
	e := &Error{Status: http.StatusUnauthorized, Type: "invalid_request_error"}
	switch wire.ClassifyKey(key) {
	case wire.KeyMissing:
		e.Message = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer " +
			"auth (i.e. Authorization: Bearer YOUR_KEY)."
	case wire.KeyInvalid:
		e.Code, e.Message = "invalid_api_key",
			"Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."
	case wire.KeyExpired:
		// No report of an expired key names the code.
		e.Code, e.Message = "expired_api_key", "The API key provided has expired. Create a new one."
	case wire.KeyQuota:
		return quota()
	case wire.KeyOK:
		return nil
	}
	return e
}

func quota() *Error {
	return &Error{
		Status: http.StatusTooManyRequests, Type: "insufficient_quota", Code: "insufficient_quota",
		Message: "You exceeded your current quota, please check your plan and billing details. For more information on this error, " +
			"read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
	}
}

// GoogleKey returns Google's error for a key, or nil if the key is accepted.
func GoogleKey(key string) *Error {
	e := &Error{Status: http.StatusBadRequest}
	switch wire.ClassifyKey(key) {
	case wire.KeyMissing:
		e.Status, e.Message = http.StatusForbidden, "Method doesn't allow unregistered callers "+
			"(callers without established identity). Please use API Key or other form of API consumer identity to call this API."
	case wire.KeyInvalid:
		e.Message = "API key not valid. Please pass a valid API key."
	case wire.KeyExpired:
		e.Message = "API key expired. Please renew the API key."
	case wire.KeyQuota:
		return quota()
	case wire.KeyOK:
		return nil
	}
	return e
}

// ModelNotFound returns OpenAI's error for an unknown model.
func ModelNotFound(name string) *Error {
	return &Error{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found",
		Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", name)}
}

func failure(status int, message string) *Error {
	e := &Error{Status: status, Type: "server_error", Message: cmp.Or(message, http.StatusText(status), "The request failed.")}
	switch {
	case status == http.StatusTooManyRequests:
		e.Type, e.Code = "requests", "rate_limit_exceeded"
		if message == "" {
			e.Message = "Rate limit reached for requests. Please try again later."
		}
	case status < 500:
		e.Type = "invalid_request_error"
	case message == "":
		e.Message = "The server had an error while processing your request. Sorry about that!"
	}
	return e
}
