package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"voicegw/internal/bounded"
)

// Endpoint is a receiver.
type Endpoint struct {
	// Name is unique, and of the form that the store wants: letters from a to z, digits and hyphens.
	Name string
	// URL is where events are sent. It may hold a secret, so it is neither logged nor part of an error.
	URL string
	// Secrets sign, all of them: during a change the receiver may know either.
	Secrets []Secret
	// Events are the types that are sent; nil means all.
	Events []string
	// Private allows addresses of this machine and of private networks. Addresses that are valid on one
	// link alone, where clouds serve credentials, are never allowed.
	Private bool
	// Timeout bounds an attempt. Zero means 10 s; it must be below the store's lease of a minute.
	Timeout time.Duration
}

// wants reports whether the endpoint gets events of a type.
func (e *Endpoint) wants(kind string) bool { return e.Events == nil || slices.Contains(e.Events, kind) }

// result is what became of an attempt.
type result struct {
	ok   bool
	gone bool // the receiver wants no events any more (410)
	// why says what went wrong, without the address; it is one of few texts.
	why string
	// after is how long the receiver wants to be left alone; zero if it has not said.
	after time.Duration
}

// poster sends to one endpoint.
type poster struct {
	// Fixed after newPoster.
	Endpoint
	// direct connects to public addresses alone, unless Private is set. proxied connects to the proxy that proxy
	// returns for a request.
	direct, proxied *http.Client
	proxy           func(*http.Request) (*url.URL, error)
}

func newPoster(e Endpoint) *poster {
	if e.Timeout == 0 {
		e.Timeout = 10 * time.Second
	}
	direct, proxied := bounded.NewTransport(), bounded.NewTransport()
	p := &poster{Endpoint: e, direct: bounded.Unfollowed(direct), proxied: bounded.Unfollowed(proxied), proxy: proxied.Proxy}
	direct.Proxy, direct.MaxConnsPerHost, proxied.MaxConnsPerHost = nil, workers, workers
	dialer := &net.Dialer{Timeout: e.Timeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return errAddress
		}
		return checkAddress(at.Addr(), e.Private)
	}}
	direct.DialContext = dialer.DialContext
	proxied.Proxy = func(r *http.Request) (*url.URL, error) { return p.proxy(r) }
	return p
}

// close closes the connections that are idle.
func (p *poster) close() {
	p.direct.CloseIdleConnections()
	p.proxied.CloseIdleConnections()
}

// lookupTime bounds how long a name is looked up whose address a proxy looks up again.
const lookupTime = 2 * time.Second

// clientFor returns the client for a request. The proxy looks a name up and connects, so that the address can only
// be checked before: an address that this machine finds for the name must be a valid one. A name that this machine
// cannot look up is left to the proxy.
func (p *poster) clientFor(r *http.Request) (*http.Client, error) {
	switch through, err := p.proxy(r); {
	case err != nil:
		return nil, err
	case through == nil:
		return p.direct, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookupTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", r.URL.Hostname())
	var unknown *net.DNSError
	if err != nil && !errors.As(err, &unknown) {
		return nil, err
	}
	for _, ip := range addrs {
		if err := checkAddress(ip, p.Private); err != nil {
			return nil, err
		}
	}
	return p.proxied, nil
}

// errAddress says that an endpoint's name leads to an address that it must not.
var errAddress = errors.New("its address is not public, and private is not set")

// nobody are networks that are not on the internet, besides those that package netip knows
// (www.iana.org/assignments/iana-ipv4-special-registry and its like for IPv6, read 2026-11-26).
var nobody = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
}

// checkAddress refuses an address that is about to be connected to. By then its name has been looked up,
// so that it makes no difference what the name means later.
func checkAddress(ip netip.Addr, private bool) error {
	ip = ip.Unmap().WithZone("")
	switch {
	case ip.IsLinkLocalUnicast(), ip.IsMulticast(), ip.IsUnspecified():
		return errAddress
	case private:
		return nil
	case !ip.IsGlobalUnicast(), ip.IsPrivate(), slices.ContainsFunc(nobody, func(p netip.Prefix) bool { return p.Contains(ip) }):
		return errAddress
	}
	return nil
}

// post makes one attempt. Nothing of the answer counts but its status and Retry-After.
func (p *poster) post(ctx context.Context, id string, body []byte) result {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return result{why: "its URL cannot be used"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "voicegw")
	Sign(req.Header, id, time.Now(), body, p.Secrets...)
	client, err := p.clientFor(req)
	if err != nil {
		return result{why: reason(err)}
	}
	resp, err := client.Do(req)
	if err != nil {
		return result{why: reason(err)}
	}
	defer func() { _ = resp.Body.Close() }() // what it says does not count
	// A short answer is read to its end, so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	switch {
	case resp.StatusCode/100 == 2:
		return result{ok: true}
	case resp.StatusCode == http.StatusGone:
		return result{gone: true, why: "it answers 410"}
	case resp.StatusCode/100 == 3:
		return result{why: "it answers with a redirect, which is not followed"}
	}
	return result{why: fmt.Sprintf("it answers %d", resp.StatusCode), after: bounded.RetryAfter(resp.Header, time.Now())}
}

// reason says in few words why an attempt failed. The errors of package net/http name the address, which
// may hold a secret.
func reason(err error) string {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, errAddress):
		return errAddress.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	case errors.As(err, &dns):
		return "its name is not known"
	case errors.As(err, &op):
		return "it cannot be reached: " + op.Err.Error()
	}
	return "the request failed: " + err.Error()
}
