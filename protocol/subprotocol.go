package protocol

import (
	"net/http"
	"slices"
	"strings"
)

// subprotocols returns the client's offered subprotocols in order (RFC 6455 section 11.3.4: comma-separated, possibly
// in several headers).
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

// ticketPrefix marks a ticket in the list of subprotocols, keyPrefix a console's key. In a handshake, browsers can
// send a secret only there or in the URL, which is visible.
const (
	ticketPrefix = "voicegw.ticket."
	keyPrefix    = "voicegw.key."
)

// TicketSubprotocol is the subprotocol with a ticket.
func TicketSubprotocol(ticket string) string { return ticketPrefix + ticket }

// resumeSubprotocol marks a connection that resumes a session.
const resumeSubprotocol = "voicegw.resume"

// ComesBack reports whether a request resumes a session. A full gateway accepts such connections, and refuses others
// with 503 in the handshake.
func ComesBack(h http.Header) bool { return slices.Contains(subprotocols(h), resumeSubprotocol) }

// secretOf returns the secret in a subprotocol with that prefix, if any. ok is false if several differ or one is too
// long.
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

// OfferedKey returns the unverified console key in a request's subprotocols; empty if there is none, or several. It
// is a secret.
func OfferedKey(h http.Header) string {
	key, _ := secretOf(subprotocols(h), keyPrefix)
	return key
}

// OffersTicket reports whether a request has a ticket in its subprotocols.
func OffersTicket(h http.Header) bool {
	ticket, ok := secretOf(subprotocols(h), ticketPrefix)
	return ok && ticket != ""
}
