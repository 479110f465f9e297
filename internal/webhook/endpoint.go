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
	// Name is unique; the store allows a to z, digits and hyphens.
	Name string
	// URL may hold a secret, so it is never logged or part of an error.
	URL string
	// Secrets all sign each event, so that the receiver may know either during a change.
	Secrets []Secret
	// Events are the types sent; nil means all.
	Events []string
	// Private allows loopback and private addresses. Link-local addresses, where clouds serve credentials, are never
	// allowed.
	Private bool
	// Timeout bounds an attempt. Zero means 10 s; it must be below the store's lease of a minute.
	Timeout time.Duration
}

func (e *Endpoint) wants(kind string) bool { return e.Events == nil || slices.Contains(e.Events, kind) }

type result struct {
	ok   bool
	gone bool // the receiver answered 410: no more events
	// why is the error without the address, one of a few texts.
	why string
	// after is the receiver's Retry-After; zero if missing.
	after time.Duration
}

type poster struct {
	// Immutable.
	Endpoint
	// direct connects to public addresses only, unless Private is set. proxied connects to the proxy that proxy returns
	// for a request.
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

func (p *poster) close() {
	p.direct.CloseIdleConnections()
	p.proxied.CloseIdleConnections()
}

// lookupTime bounds the lookup of a name that a proxy will look up again.
const lookupTime = 2 * time.Second

// clientFor returns the client for a request. A proxy resolves the name itself, so the address can only be checked
// beforehand: if this machine resolves the name, the address must be allowed. A name that only the proxy can resolve is
// left to it.
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

var errAddress = errors.New("the URL's address is not public; set private to allow it")

// nobody lists the reserved networks that package netip doesn't know
// (www.iana.org/assignments/iana-ipv4-special-registry and its IPv6 counterpart, read 2026-11-26).
var nobody = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
}

// checkAddress refuses forbidden addresses. It runs after name resolution, just before connecting, so that a later DNS
// change can't bypass it.
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

// post makes one attempt. Only the answer's status and Retry-After matter.
func (p *poster) post(ctx context.Context, id string, body []byte) result {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return result{why: "invalid URL"}
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
	defer func() { _ = resp.Body.Close() }()
	// Reading a short answer to its end allows the connection to be reused.
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	switch {
	case resp.StatusCode/100 == 2:
		return result{ok: true}
	case resp.StatusCode == http.StatusGone:
		return result{gone: true, why: "status 410"}
	case resp.StatusCode/100 == 3:
		return result{why: "redirects are not followed"}
	}
	return result{why: fmt.Sprintf("status %d", resp.StatusCode), after: bounded.RetryAfter(resp.Header, time.Now())}
}

// reason describes a failure without the address, which may hold a secret and which the errors of net/http include.
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
		return "timeout"
	case errors.As(err, &dns):
		return "unknown host"
	case errors.As(err, &op):
		return "cannot connect: " + op.Err.Error()
	}
	return "the request failed: " + err.Error()
}
