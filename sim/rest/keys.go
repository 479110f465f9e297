package rest

import (
	"cmp"
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
