package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Client is the known origin of a request.
type Client struct {
	// Addr has no zone, is never IPv4-mapped, and is zero on a connection without an IP address.
	Addr netip.Addr
	// Own is false for a proxy's address, which several people may share: a trusted one that did not name its client,
	// or an untrusted peer that sent a proxy's header.
	Own bool
}

// clientOf returns the peer or, behind a trusted proxy, the rightmost address of X-Forwarded-For that isn't one (or the
// leftmost). A list with an invalid entry before that counts as missing. Forwarded (RFC 7239) is ignored: such proxies
// pass the client's own on.
func (s *Server) clientOf(r *http.Request) Client {
	direct := directAddr(r)
	if !s.trusted(direct) {
		return Client{Addr: direct, Own: !sentByProxy(r)}
	}
	if addr, ok := s.forwardedFor(direct, r.Header.Values("X-Forwarded-For")); ok {
		return Client{Addr: addr, Own: true}
	}
	return Client{Addr: direct, Own: !sentByProxy(r)}
}

func (s *Server) clientAddr(r *http.Request) netip.Addr { return s.clientOf(r).Addr }

// scheme is that of the client. known is false if the gateway only knows that its own connection is plain. Only the last
// X-Forwarded-Proto counts, and only from a trusted proxy.
func (s *Server) scheme(r *http.Request) (scheme string, known bool) {
	if values := r.Header.Values("X-Forwarded-Proto"); len(values) > 0 && s.trusted(directAddr(r)) {
		last := values[len(values)-1]
		switch last = strings.ToLower(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); last {
		case "http", "https":
			return last, true
		}
	}
	if r.TLS != nil {
		return "https", true
	}
	return "http", false
}

func directAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

func (s *Server) trusted(addr netip.Addr) bool {
	return slices.ContainsFunc(s.opts.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"}

func sentByProxy(r *http.Request) bool {
	return slices.ContainsFunc(forwarded, func(name string) bool { return len(r.Header[name]) > 0 })
}

func (s *Server) forwardedFor(direct netip.Addr, values []string) (netip.Addr, bool) {
	var last netip.Addr
	for _, hop := range slices.Backward(strings.Split(strings.Join(values, ","), ",")) {
		addr, ok := parseHop(hop)
		// A loopback address is valid only on the machine that wrote it.
		if !ok || addr.IsLoopback() && !direct.IsLoopback() {
			return netip.Addr{}, false
		}
		if !s.trusted(addr) {
			return addr, true
		}
		last = addr
	}
	return last, last.IsValid()
}

// parseHop parses an address of X-Forwarded-For, with or without a port. Names, zones and the unspecified address are
// rejected.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.Trim(text, " \t")
	addr, err := netip.ParseAddr(text)
	if err != nil {
		var ap netip.AddrPort
		if ap, err = netip.ParseAddrPort(text); err == nil {
			addr = ap.Addr()
		} else if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
			if addr, err = netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil && !addr.Is6() {
				return netip.Addr{}, false
			}
		}
	}
	addr = addr.Unmap()
	if err != nil || addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() {
		return netip.Addr{}, false
	}
	return addr, true
}
