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

// ticketPrefix begins a ticket in the list of subprotocols: a browser can send it there
// and in session.start, and nowhere else without putting it into an address.
const ticketPrefix = "voicegw.ticket."

// TicketSubprotocol is the subprotocol that carries a ticket.
func TicketSubprotocol(ticket string) string { return ticketPrefix + ticket }

// ticketOf returns the ticket that a client offers as a subprotocol; empty for none. ok
// is false for several that differ, and for one that is too long.
func ticketOf(offered []string) (ticket string, ok bool) {
	for _, o := range offered {
		t, found := strings.CutPrefix(o, ticketPrefix)
		switch {
		case !found:
		case len(t) > MaxTicketBytes || ticket != "" && t != ticket:
			return "", false
		default:
			ticket = t
		}
	}
	return ticket, true
}
