package rest

import (
	"net/http"
	"strings"
)

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

// GoogleKeyOf returns the credential of a request: query key, x-goog-api-key, or
// Authorization: Bearer.
func GoogleKeyOf(r *http.Request) string {
	if k := r.URL.Query().Get("key"); k != "" {
		return k
	}
	if k := r.Header.Get("X-Goog-Api-Key"); k != "" {
		return k
	}
	return OpenAIKeyOf(r)
}
