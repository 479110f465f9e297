package wire

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"voicegw/internal/openaiwire"
)

// Error is an error response, in the terms of both providers.
type Error = openaiwire.Error

// Dialect writes errors in a provider's form.
type Dialect func(*Error) []byte

// OpenAIError writes the error object of OpenAI's REST APIs.
func OpenAIError(e *Error) []byte { return e.Body() }

// statusNames are Google's words for HTTP statuses (https://cloud.google.com/apis/design/errors, read 2026-11-20).
var statusNames = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
	429: "RESOURCE_EXHAUSTED", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

// GoogleError writes the error object of Google's APIs (https://cloud.google.com/apis/design/errors, read 2026-11-20).
func GoogleError(e *Error) []byte {
	type object struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	}
	b, err := json.Marshal(map[string]object{"error": {e.Status, e.Message, cmp.Or(statusNames[e.Status], "INTERNAL")}})
	if err != nil { // strings and numbers can always be encoded
		return []byte(`{"error":{}}`)
	}
	return b
}

// Refuse answers a request with an error.
func Refuse(w http.ResponseWriter, d Dialect, e *Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(d(e)) // fails only if the client is gone
}

// OpenAIKey returns OpenAI's error for a key, or nil if the key is accepted.
func OpenAIKey(key string) *Error {
	e := &Error{Status: http.StatusUnauthorized, Type: "invalid_request_error"}
	switch ClassifyKey(key) {
	case KeyMissing:
		e.Message = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer " +
			"auth (i.e. Authorization: Bearer YOUR_KEY)."
	case KeyInvalid:
		e.Code, e.Message = "invalid_api_key",
			"Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."
	case KeyExpired:
		// No report of an expired key names the code.
		e.Code, e.Message = "expired_api_key", "The API key provided has expired. Create a new one."
	case KeyQuota:
		return Quota()
	case KeyOK:
		return nil
	}
	return e
}

// Quota is both providers' error for an exhausted quota.
func Quota() *Error {
	return &Error{
		Status: http.StatusTooManyRequests, Type: "insufficient_quota", Code: "insufficient_quota",
		Message: "You exceeded your current quota, please check your plan and billing details. For more information on this error, " +
			"read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
	}
}

// GoogleKey returns Google's error for a key, or nil if the key is accepted.
func GoogleKey(key string) *Error {
	e := &Error{Status: http.StatusBadRequest}
	switch ClassifyKey(key) {
	case KeyMissing:
		e.Status, e.Message = http.StatusForbidden, "Method doesn't allow unregistered callers "+
			"(callers without established identity). Please use API Key or other form of API consumer identity to call this API."
	case KeyInvalid:
		e.Message = "API key not valid. Please pass a valid API key."
	case KeyExpired:
		e.Message = "API key expired. Please renew the API key."
	case KeyQuota:
		return Quota()
	case KeyOK:
		return nil
	}
	return e
}

// OpenAIKeyOf returns the key of a request: Authorization: Bearer, or Azure's api-key.
func OpenAIKeyOf(r *http.Request) string {
	if k := r.Header.Get("Api-Key"); k != "" {
		return k
	}
	if scheme, k, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(k)
	}
	return ""
}

// GoogleKeyOf returns the credential of a request: query key or access_token, x-goog-api-key, or
// Authorization: Bearer or Token.
func GoogleKeyOf(r *http.Request) string {
	q := r.URL.Query()
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Token") {
		token = ""
	}
	return cmp.Or(q.Get("key"), q.Get("access_token"), r.Header.Get("X-Goog-Api-Key"), OpenAIKeyOf(r), strings.TrimSpace(token))
}
