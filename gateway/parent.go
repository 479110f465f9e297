package gateway

import (
	"net/http"

	"voicegw/protocol"

	"voicegw/internal/auth"
)

// parentOf returns the span of the caller's own that a request belongs to, by its header traceparent; none if
// the caller may not say so. Whoever says that it has kept its span makes the gateway keep those below it, and can
// mix its requests into the traces of others: only callers may that may look inside, and those on this machine
// where nobody has to show who it is.
func parentOf(r *http.Request) protocol.TraceParent {
	p := auth.From(r.Context())
	given := r.Header.Values(protocol.TraceHeader)
	if len(given) != 1 || !p.May(auth.ScopeInspect) && p.Kind != auth.KindLocal {
		return protocol.TraceParent{}
	}
	parent, _ := protocol.ParseTraceParent(given[0]) // one that is not valid is ignored, as the specification wants it
	return parent
}
