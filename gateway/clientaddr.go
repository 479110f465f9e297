package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Client says where a request comes from, as far as that can be known.
type Client struct {
	// Addr is the client's address, without a zone and never an IPv4 address in IPv6's
	// form. It is the zero Addr on a connection that has no IP address.
	Addr netip.Addr
	// Own says that Addr belongs to the client itself. It is false where Addr is a
	// proxy's: a trusted proxy did not say for whom it asks, or the request has a header
	// that only proxies add and comes from no trusted proxy. Several people may stand
	// behind such an address.
	Own bool
}

// clientOf says where a request comes from.
//
// The address is that of the connection, unless the connection comes from one of
// [Options.TrustedProxies]. Then X-Forwarded-For counts: its values are read in the order
// in which they stand as one list, from the right, where the nearest proxy has written, and
// the first address that is no trusted proxy's is the client's. Where all are trusted, the
// leftmost is. A list with anything else in it on the way there counts as missing.
//
// The header Forwarded (RFC 7239) never counts: proxies that write X-Forwarded-For pass it
// on as a client has sent it, so a gateway that reads both believes the client.
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

// clientAddr is the address that limits, logs and users without a name use.
func (s *Server) clientAddr(r *http.Request) netip.Addr { return s.clientOf(r).Addr }

// scheme is "https" or "http": the one that the client speaks to the gateway, or to the trusted
// proxy in front of it; told is false if the gateway only knows of a plain connection.
// X-Forwarded-Proto counts only from a trusted proxy, and only its last value, which the
// nearest proxy wrote.
func (s *Server) scheme(r *http.Request) (scheme string, told bool) {
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

// directAddr is the address at the other end of the connection: a client's or a proxy's.
func directAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// trusted says whether an address belongs to a trusted proxy.
func (s *Server) trusted(addr netip.Addr) bool {
	return slices.ContainsFunc(s.opts.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// forwarded are the headers by which a proxy names its client.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"}

// sentByProxy says whether a request has a header that only proxies add.
func sentByProxy(r *http.Request) bool {
	return slices.ContainsFunc(forwarded, func(name string) bool { return len(r.Header[name]) > 0 })
}

// forwardedFor returns the client's address from the values of X-Forwarded-For that the
// trusted proxy at direct sent.
func (s *Server) forwardedFor(direct netip.Addr, values []string) (netip.Addr, bool) {
	var last netip.Addr
	for _, hop := range slices.Backward(strings.Split(strings.Join(values, ","), ",")) {
		addr, ok := parseHop(hop)
		// A loopback address means something only on the machine that wrote it.
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

// parseHop reads one address of X-Forwarded-For: an IP address, with brackets around an
// IPv6 one where a port follows. Ports are left out. Names, zones and the unspecified
// address are refused.
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
