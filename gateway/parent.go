package gateway

import (
	"net/http"

	"voicegw/internal/auth"
	"voicegw/internal/traceparent"
)

// parentOf returns the span of the caller's own that a request belongs to, by its header traceparent; none if
// the caller may not say so. Whoever says that it has kept its span makes the gateway keep those below it, and can
// mix its requests into the traces of others: only callers may that may look inside, and those on this machine
// where nobody has to show who it is.
func parentOf(r *http.Request) traceparent.Parent {
	p := auth.From(r.Context())
	given := r.Header.Values(traceparent.Header)
	if len(given) != 1 || !p.May(auth.ScopeInspect) && p.Kind != auth.KindLocal {
		return traceparent.Parent{}
	}
	parent, _ := traceparent.Parse(given[0]) // one that is not valid is ignored, as the specification wants it
	return parent
}
