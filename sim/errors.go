package sim

import (
	"cmp"
	"fmt"
	"net/http"

	"voicegw/internal/openaiwire"
	"voicegw/sim/wire"
)

// Error is an error response; see wire.Error.
type Error = wire.Error

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

// modelNotFound returns OpenAI's error for an unknown model.
func modelNotFound(name string) *Error {
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
