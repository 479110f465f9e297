package gateway

import (
	"net/http"

	"github.com/rs/cors"
)

// preflightSeconds is how long a browser may remember that a page of another origin is
// allowed. An operator who takes an origin back waits for so long at most; what such a page
// sends is refused at once all the same.
const preflightSeconds = 600

// forPages serves an endpoint that pages of the origins that [Options.Origins] names may
// call and read the answers of, as https://fetch.spec.whatwg.org/#http-cors-protocol (read
// 2026-11-22) has it: without it a browser keeps the answer from the page. No cookies are
// involved, so none are allowed.
func (s *Server) forPages(method, path string, h http.HandlerFunc) {
	c := cors.New(cors.Options{
		AllowOriginVaryRequestFunc: func(r *http.Request, _ string) (bool, []string) { return s.originAllowed(r), nil },
		AllowedMethods:             []string{method},
		AllowedHeaders:             []string{"Content-Type", "Authorization", "Idempotency-Key"},
		ExposedHeaders:             []string{"Retry-After"},
		MaxAge:                     preflightSeconds,
	})
	s.handle(method+" "+path, c.Handler(h).ServeHTTP)
	s.handle("OPTIONS "+path, c.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", method+", OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	})).ServeHTTP)
}
