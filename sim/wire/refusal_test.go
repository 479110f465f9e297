package wire

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"voicegw/internal/openaiwire"
)

func TestErrorsOfBothProviders(t *testing.T) {
	e := openaiwire.Invalid("too_long", "prompt", "The prompt has %d words.", 9)
	if got, want := string(OpenAIError(e)), `{"error":{"message":"The prompt has 9 words.","type":"invalid_request_error","param":"prompt","code":"too_long"}}`; got != want {
		t.Errorf("%s", got)
	}
	if got, want := string(GoogleError(e)), `{"error":{"code":400,"message":"The prompt has 9 words.","status":"INVALID_ARGUMENT"}}`; got != want {
		t.Errorf("%s", got)
	}
	if got := string(OpenAIError(OpenAIKey(""))); !strings.Contains(got, `"param":null,"code":null`) {
		t.Errorf("%s", got)
	}
	for key, want := range map[string][2]int{"": {401, 403}, "sk-invalid": {401, 400}, "expired": {401, 400}, "quota": {429, 429}, "good": {0, 0}} {
		status := func(e *Error) int {
			if e == nil {
				return 0
			}
			return e.Status
		}
		if got := [2]int{status(OpenAIKey(key)), status(GoogleKey(key))}; got != want {
			t.Errorf("%q: %v, want %v", key, got, want)
		}
	}
}

func TestKeysOfRequests(t *testing.T) {
	for header, want := range map[string]string{"Authorization: Bearer a": "a", "authorization: bearer  b ": "b", "Api-Key: c": "c", "Authorization: Basic d": "", "X-Goog-Api-Key: e": ""} {
		r := httptest.NewRequest(http.MethodPost, "/?key=q", nil)
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if got := OpenAIKeyOf(r); got != want {
			t.Errorf("%s: %q", header, got)
		}
		if got := GoogleKeyOf(r); got != "q" {
			t.Errorf("%s, with a key in the query: %q", header, got)
		}
	}
}
