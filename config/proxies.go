package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// Proxies returns TrustedProxies as networks; a single address is a network of one.
// Load has checked them.
func (c *Config) Proxies() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(c.TrustedProxies))
	for _, text := range c.TrustedProxies {
		if p, err := parseProxy(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// parseProxy reads an address or a network. The error is the end of a sentence that begins
// with the entry.
func parseProxy(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" || addr.IsUnspecified() {
			return netip.Prefix{}, fmt.Errorf(
				"which is not an IP address or a network; write for example 127.0.0.1, 10.0.0.0/8 or 2001:db8::/32")
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("which is not a network; write an address and the length of its prefix, for example " +
			"10.0.0.0/8 or 2001:db8::/32")
	case p.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("which is IPv4 in the form of IPv6; write it as IPv4")
	case p.Bits() == 0:
		return netip.Prefix{}, fmt.Errorf("which is every address: each client could claim any address; name only the proxies")
	case p.Masked() != p:
		return netip.Prefix{}, fmt.Errorf("whose address has bits beyond its prefix; write %s", p.Masked())
	}
	return p, nil
}

func (v validator) validateProxies() {
	for _, text := range v.config.TrustedProxies {
		if _, err := parseProxy(text); err != nil {
			v.bad("trusted_proxies", "trusted_proxies holds %s, %v.", quote(text), err)
		}
	}
}
