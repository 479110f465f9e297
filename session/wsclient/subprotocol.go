package wsclient

import (
	"net/http"
	"strings"
)

// subprotocols returns what a client offers, in its order (RFC 6455 section
// 11.3.4: a comma-separated list, possibly in several headers).
func subprotocols(h http.Header) []string {
	var out []string
	for _, line := range h.Values("Sec-WebSocket-Protocol") {
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}
