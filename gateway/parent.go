package gateway

import (
	"net/http"

	"voicegw/internal/auth"
	"voicegw/protocol"
)

// parentOf returns the caller's span from the header traceparent. A sampled span makes the gateway export the spans
// below it and mixes the request into another trace, so only callers with inspect may send one, or local ones while
// no credentials are required.
func parentOf(r *http.Request) protocol.TraceParent {
	p := auth.From(r.Context())
	given := r.Header.Values(protocol.TraceHeader)
	if len(given) != 1 || !p.May(auth.ScopeInspect) && p.Kind != auth.KindLocal {
		return protocol.TraceParent{}
	}
	parent, _ := protocol.ParseTraceParent(given[0]) // the specification says to ignore an invalid one
	return parent
}
