package protocol

import (
	"net/http"
	"slices"
	"strings"
)

// subprotocols returns the subprotocols that a client offers, in its order (RFC 6455 section
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

// ticketPrefix marks a ticket in the list of subprotocols, keyPrefix a console's key. In a
// handshake a browser can send a secret only there or in the address, where it would be
// visible.
const (
	ticketPrefix = "voicegw.ticket."
	keyPrefix    = "voicegw.key."
)

// TicketSubprotocol is the subprotocol that carries a ticket.
func TicketSubprotocol(ticket string) string { return ticketPrefix + ticket }

// resumeSubprotocol says that the client comes back to a session.
const resumeSubprotocol = "voicegw.resume"

// ComesBack reports whether a request says that its client comes back to a session. A gateway that takes no new session
// accepts such a connection; it refuses any other one with 503 in the handshake.
func ComesBack(h http.Header) bool { return slices.Contains(subprotocols(h), resumeSubprotocol) }

// secretOf returns the secret that a client offers as a subprotocol with a prefix; empty if it
// offers none. ok is false if several differ or if one is too long.
func secretOf(offered []string, prefix string) (secret string, ok bool) {
	for _, o := range offered {
		t, found := strings.CutPrefix(o, prefix)
		switch {
		case !found:
		case len(t) > MaxTicketBytes || secret != "" && t != secret:
			return "", false
		default:
			secret = t
		}
	}
	return secret, true
}

// OfferedKey returns the console's key that a request offers as a subprotocol; empty if it offers
// none, or several. It is a secret and has not been checked.
func OfferedKey(h http.Header) string {
	key, _ := secretOf(subprotocols(h), keyPrefix)
	return key
}

// OffersTicket reports whether a request offers a ticket as a subprotocol.
func OffersTicket(h http.Header) bool {
	ticket, ok := secretOf(subprotocols(h), ticketPrefix)
	return ok && ticket != ""
}
