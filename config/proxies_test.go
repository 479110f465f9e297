package config

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTrustedProxies: addresses and networks are accepted, and the error of a mistake says what to write instead.
func TestTrustedProxies(t *testing.T) {
	load := func(text string) (*Config, error) {
		c, _, err := Load(Source{Environ: []string{"VOICEGW_TRUSTED_PROXIES=" + text}})
		return c, err
	}
	c, err := load("127.0.0.1, 10.0.0.0/8, ::1, 2001:db8::/32, ::ffff:192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.Proxies() {
		got = append(got, p.String())
	}
	if diff := cmp.Diff([]string{"127.0.0.1/32", "10.0.0.0/8", "::1/128", "2001:db8::/32", "192.0.2.1/32"}, got); diff != "" {
		t.Error(diff)
	}
	if !c.Proxies()[4].Contains(netip.MustParseAddr("192.0.2.1")) {
		t.Error("an IPv4 address in IPv6's form does not count as IPv4")
	}
	for text, word := range map[string]string{
		"proxy.example": "not an IP address", "10.0.0.0/33": "not a network", "10.0.0.1/8": "write 10.0.0.0/8",
		"0.0.0.0/0": "every address", "::/0": "every address", "0.0.0.0": "not an IP address", "fe80::1%eth0": "not an IP address",
		"127.0.0.1:8080": "not an IP address", "::ffff:10.0.0.0/104": "write it as IPv4",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), "trusted_proxies") {
			t.Errorf("%s: %v, which lacks %q", text, err, word)
		}
	}
}
