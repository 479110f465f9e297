package bounded

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Outbound sends requests to an address that a configuration names. It connects to public addresses only, unless private
// ones are allowed, and returns redirects as answers. It may be used concurrently.
type Outbound struct {
	private bool
	// direct checks the address when it connects. proxied connects to the proxy that Proxy returns for a request.
	direct, proxied *http.Client
	// Proxy is http.ProxyFromEnvironment unless a test replaces it before the first request.
	Proxy func(*http.Request) (*url.URL, error)
}

// NewOutbound returns an Outbound with at most conns connections to a host. private allows loopback and private
// addresses; those where clouds serve credentials are never allowed.
func NewOutbound(private bool, conns int, l Limits) *Outbound {
	direct, proxied := NewTransport(), NewTransport()
	o := &Outbound{private: private, direct: Unfollowed(Wrap(direct, l)), proxied: Unfollowed(Wrap(proxied, l)), Proxy: proxied.Proxy}
	direct.Proxy, direct.MaxConnsPerHost, proxied.MaxConnsPerHost = nil, conns, conns
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return ErrAddress
		}
		return checkAddress(at.Addr(), private)
	}}
	direct.DialContext = dialer.DialContext
	proxied.Proxy = func(r *http.Request) (*url.URL, error) { return o.Proxy(r) }
	return o
}

// Do sends a request. The error wraps [ErrAddress] if the address is not allowed. Only requests with GET, HEAD, OPTIONS and
// TRACE are sent again if a connection ends without an answer.
func (o *Outbound) Do(r *http.Request) (*http.Response, error) {
	// net/http would send a request with these headers again on its own (Request.isReplayable, Go 1.26), which only the
	// caller may decide. It compares their canonical names.
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, has := r.Header[name]; has {
			delete(r.Header, name)
			r.Header[strings.ToLower(name)] = values
		}
	}
	client, err := o.clientFor(r)
	if err != nil {
		return nil, err
	}
	return client.Do(r) //nolint:wrapcheck // callers use Bare
}

// Close closes idle connections.
func (o *Outbound) Close() {
	o.direct.CloseIdleConnections()
	o.proxied.CloseIdleConnections()
}

// lookupTime bounds the lookup of a name that a proxy will look up again.
const lookupTime = 2 * time.Second

// clientFor returns the client for a request. A proxy resolves the name itself, so the address can only be checked
// beforehand: if this machine resolves the name, the address must be allowed. A name that only the proxy can resolve is
// left to it.
func (o *Outbound) clientFor(r *http.Request) (*http.Client, error) {
	switch through, err := o.Proxy(r); {
	case err != nil:
		return nil, unsent{err}
	case through == nil:
		return o.direct, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookupTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", r.URL.Hostname())
	var unknown *net.DNSError
	if err != nil && !errors.As(err, &unknown) {
		return nil, unsent{err}
	}
	for _, ip := range addrs {
		if err := checkAddress(ip, o.private); err != nil {
			return nil, unsent{err}
		}
	}
	return o.proxied, nil
}

// ErrAddress is the error of an [Outbound] for an address that is not allowed.
var ErrAddress = errors.New("the URL's address is not public; set private to allow it")

// unroutable lists the reserved networks that package netip doesn't know
// (www.iana.org/assignments/iana-ipv4-special-registry and its IPv6 counterpart, read 2026-11-26).
var unroutable = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("fec0::/10"),
}

// metadata lists the addresses outside link-local networks where AWS, Alibaba, Oracle and Azure serve credentials and settings
// of a machine (their documentation, read 2026-11-30).
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("168.63.129.16"),
}

// checkAddress refuses forbidden addresses. It runs after name resolution, just before connecting, so that a later DNS
// change can't bypass it.
func checkAddress(ip netip.Addr, private bool) error {
	ip = ip.Unmap().WithZone("")
	switch {
	case ip.IsLinkLocalUnicast(), ip.IsMulticast(), ip.IsUnspecified(), slices.Contains(metadata, ip):
		return ErrAddress
	case private:
		return nil
	case !ip.IsGlobalUnicast(), ip.IsPrivate(), slices.ContainsFunc(unroutable, func(p netip.Prefix) bool { return p.Contains(ip) }):
		return ErrAddress
	}
	return nil
}
