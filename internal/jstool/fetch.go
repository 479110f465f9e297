package jstool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"voicegw/internal/bounded"
	"voicegw/registry/document"
)

const maxHostConns = 64

var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Accept-Encoding"}

func (p *Hosts) fetch(ctx context.Context, t *Tool, m *fetchMessage, call toolCall) (*fetched, error) {
	u, err := url.Parse(m.URL)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, errors.New("the URL is not absolute, or has a user")
	}
	private, ok := t.allowed(u, call)
	if !ok {
		return nil, fmt.Errorf("network of schema.json does not list %s", document.Shorten(u.Scheme+"://"+u.Host, maxText))
	}
	req, err := http.NewRequestWithContext(ctx, m.Method, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return nil, bounded.Bare(err)
	}
	for name, value := range m.Headers {
		if !slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)) {
			req.Header.Set(name, value)
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "voicegw")
	}
	out := p.public
	if private {
		out = p.private
	}
	resp, err := out.Do(req)
	if err != nil {
		return nil, bounded.Bare(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "" && !m.Manual {
		return nil, fmt.Errorf("the server answers %d with another address; redirects are not followed", resp.StatusCode)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, bounded.Bare(err)
	}
	return &fetched{Status: resp.StatusCode, Text: http.StatusText(resp.StatusCode), Headers: resp.Header, Body: body}, nil
}

// literal reports whether a host is an address or this machine, and not a name that a DNS server may point elsewhere.
func literal(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost"
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "http":
		return u.Host + ":80"
	}
	return u.Host + ":443"
}
