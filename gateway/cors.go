package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rs/cors"
)

// preflightSeconds is how long a browser may remember that a page of another origin is
// allowed. It bounds how long a revoked origin's page may believe that it is; its requests are
// refused at once all the same.
const preflightSeconds = 600

// pageHeaders are the headers that pages of allowed origins may send: those that the endpoints
// read, and those that clients of Chat Completions and of the AI SDK put into every request. A
// name that ends in "*" stands for all names with that beginning; browsers do not know such
// names, so the answer lists the headers that were asked for.
var pageHeaders = []string{
	"accept", "accept-language", "authorization", "content-language", "content-type", "idempotency-key", "last-event-id",
	"openai-organization", "openai-project", "openai-beta", "api-key", "x-api-key", "user-agent", "x-request-id", "x-client-request-id",
	"http-referer", "x-title", "traceparent", "tracestate", "x-stainless-*", "x-vercel-*", "x-voicegw-*",
}

// exposedHeaders are the headers of answers that such pages may read.
var exposedHeaders = []string{"Retry-After", "Retry-After-Ms", "RateLimit", "RateLimit-Policy", "X-Should-Retry", "X-Request-Id", "X-Vercel-Ai-Ui-Message-Stream"}

// pageHeader says whether pages may send a header.
func pageHeader(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return slices.ContainsFunc(pageHeaders, func(known string) bool {
		begin, open := strings.CutSuffix(known, "*")
		return name == known || open && strings.HasPrefix(name, begin)
	})
}

// mayAsk says whether pages may send every header that a browser asks for.
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

// forPages serves an endpoint that pages of the origins in [Options.Origins] may call and read
// (https://fetch.spec.whatwg.org/#http-cors-protocol, read 2026-11-22): otherwise a browser
// keeps the answer from the page. It uses no cookies, so it allows no credentials.
func (s *Server) forPages(method, path string, h http.HandlerFunc) {
	c := cors.New(cors.Options{
		AllowOriginVaryRequestFunc: func(r *http.Request, _ string) (bool, []string) { return s.originAllowed(r), nil },
		AllowedMethods:             []string{method},
		AllowedHeaders:             []string{"*"}, // the headers that were asked for, which mayAsk has checked
		ExposedHeaders:             exposedHeaders,
		MaxAge:                     preflightSeconds,
	})
	pattern := method + " " + path
	s.routes.add(pattern, c.Handler(s.guarded(accessOf(pattern), h)).ServeHTTP) // a refusal can be read, too
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", method+", OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	})
	allowed := c.Handler(plain)
	s.handle("OPTIONS "+path, func(w http.ResponseWriter, r *http.Request) {
		if mayAsk(r) {
			allowed.ServeHTTP(w, r)
			return
		}
		plain(w, r)
	})
}
