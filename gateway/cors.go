package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rs/cors"
)

// preflightSeconds is how long a browser may cache a preflight. A revoked origin's requests are refused at once.
const preflightSeconds = 600

// pageHeaders are the headers that allowed pages may send, among them those of Chat Completions clients and the AI SDK.
// "*" matches any suffix; browsers don't know patterns, so the answer repeats the requested headers.
var pageHeaders = []string{
	"accept", "accept-language", "authorization", "content-language", "content-type", "idempotency-key", "last-event-id",
	"openai-organization", "openai-project", "openai-beta", "api-key", "x-api-key", "user-agent", "x-request-id", "x-client-request-id",
	"http-referer", "x-title", "traceparent", "tracestate", "x-stainless-*", "x-vercel-*", "x-voicegw-*", "mcp-*",
}

var exposedHeaders = []string{"Retry-After", "Retry-After-Ms", "RateLimit", "RateLimit-Policy", "X-Should-Retry",
	"X-Request-Id", "X-Vercel-Ai-Ui-Message-Stream"}

func pageHeader(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return slices.ContainsFunc(pageHeaders, func(known string) bool {
		begin, open := strings.CutSuffix(known, "*")
		return name == known || open && strings.HasPrefix(name, begin)
	})
}

func mayAsk(r *http.Request) bool {
	for _, line := range r.Header.Values("Access-Control-Request-Headers") {
		for name := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(name) != "" && !pageHeader(name) {
				return false
			}
		}
	}
	return true
}

// forPages is handle for a route that pages of [Options.Origins] may call (https://fetch.spec.whatwg.org/#http-cors-protocol,
// read 2026-11-22), without credentials, because it uses no cookies.
func (s *Server) forPages(exists bool, method, path string, a access, h handler) {
	if !exists {
		return
	}
	c := cors.New(cors.Options{
		AllowOriginVaryRequestFunc: func(r *http.Request, _ string) (bool, []string) { return s.originAllowed(r), nil },
		AllowedMethods:             []string{method},
		AllowedHeaders:             []string{"*"}, // mayAsk checks the requested headers
		ExposedHeaders:             exposedHeaders,
		MaxAge:                     preflightSeconds,
	})
	a.pattern = method + " " + path
	s.routes.add(a, c.Handler(s.guarded(a, h)).ServeHTTP) // pages can read a refusal too
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", method+", OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	})
	allowed := c.Handler(plain)
	s.routes.add(access{pattern: "OPTIONS " + path}, func(w http.ResponseWriter, r *http.Request) {
		if mayAsk(r) {
			allowed.ServeHTTP(w, r)
			return
		}
		plain(w, r)
	})
}
