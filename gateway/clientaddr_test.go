package gateway

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// proxies are the trusted proxies of these tests.
func proxies() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48"),
	}
}

// TestClientAddress: the gateway believes the part of X-Forwarded-For that trusted proxies wrote, and nothing else;
// unreadable values change nothing.
func TestClientAddress(t *testing.T) {
	s := New(Options{TrustedProxies: proxies()})
	for name, tc := range map[string]struct {
		from string
		hops []string // the values of X-Forwarded-For
		want string
		own  bool
	}{
		"a client":                              {"192.0.2.7:1", nil, "192.0.2.7", true},
		"a client, IPv4 in IPv6's form":         {"[::ffff:192.0.2.7]:1", nil, "192.0.2.7", true},
		"a client with a zone":                  {"[fe80::1%eth0]:1", nil, "fe80::1", true},
		"a client that lies":                    {"192.0.2.7:1", []string{"203.0.113.1"}, "192.0.2.7", false},
		"a proxy in IPv4":                       {"10.1.2.3:1", []string{"203.0.113.1"}, "203.0.113.1", true},
		"a proxy in IPv4 in IPv6's form":        {"[::ffff:10.1.2.3]:1", []string{"203.0.113.1"}, "203.0.113.1", true},
		"a proxy on this machine":               {"127.0.0.1:1", []string{"203.0.113.1"}, "203.0.113.1", true},
		"a proxy without the header":            {"10.1.2.3:1", nil, "10.1.2.3", true},
		"values of the client are on the left":  {"10.1.2.3:1", []string{"198.51.100.9, 203.0.113.1"}, "203.0.113.1", true},
		"two proxies":                           {"10.1.2.3:1", []string{"198.51.100.9, 203.0.113.1, 10.9.9.9"}, "203.0.113.1", true},
		"two headers are one list":              {"10.1.2.3:1", []string{"198.51.100.9", "203.0.113.1", "10.9.9.9"}, "203.0.113.1", true},
		"two headers with lists":                {"10.1.2.3:1", []string{"203.0.113.1,10.8.8.8", "10.9.9.9, 10.7.7.7"}, "203.0.113.1", true},
		"a client in the proxies' own network":  {"10.1.2.3:1", []string{"10.5.5.5, 10.6.6.6"}, "10.5.5.5", true},
		"with a port":                           {"10.1.2.3:1", []string{"203.0.113.1:4711"}, "203.0.113.1", true},
		"IPv6":                                  {"10.1.2.3:1", []string{"2001:db8:2::1"}, "2001:db8:2::1", true},
		"IPv6 in brackets":                      {"10.1.2.3:1", []string{"[2001:db8:2::1]"}, "2001:db8:2::1", true},
		"IPv6 with a port":                      {"10.1.2.3:1", []string{"[2001:db8:2::1]:443"}, "2001:db8:2::1", true},
		"a proxy in IPv6":                       {"[2001:db8:1::9]:1", []string{"2001:db8:2::1, 2001:db8:1::8"}, "2001:db8:2::1", true},
		"IPv4 in IPv6's form behind a proxy":    {"10.1.2.3:1", []string{"::ffff:203.0.113.1"}, "203.0.113.1", true},
		"spaces and tabs":                       {"10.1.2.3:1", []string{"\t 203.0.113.1 \t"}, "203.0.113.1", true},
		"garbage on the left of the client":     {"10.1.2.3:1", []string{"<script>, 203.0.113.1"}, "203.0.113.1", true},
		"garbage":                               {"10.1.2.3:1", []string{"unknown"}, "10.1.2.3", false},
		"garbage on the way":                    {"10.1.2.3:1", []string{"203.0.113.1, _hidden, 10.9.9.9"}, "10.1.2.3", false},
		"an empty value":                        {"10.1.2.3:1", []string{""}, "10.1.2.3", false},
		"an empty place":                        {"10.1.2.3:1", []string{"203.0.113.1,"}, "10.1.2.3", false},
		"brackets around IPv4":                  {"10.1.2.3:1", []string{"[203.0.113.1]"}, "10.1.2.3", false},
		"half a bracket":                        {"10.1.2.3:1", []string{"[2001:db8:2::1"}, "10.1.2.3", false},
		"an invalid port":                       {"10.1.2.3:1", []string{"203.0.113.1:99999"}, "10.1.2.3", false},
		"a zone":                                {"10.1.2.3:1", []string{"fe80::1%eth0"}, "10.1.2.3", false},
		"an unspecified address":                {"10.1.2.3:1", []string{"0.0.0.0"}, "10.1.2.3", false},
		"loopback of another machine":           {"10.1.2.3:1", []string{"127.0.0.1"}, "10.1.2.3", false},
		"loopback of this machine":              {"127.0.0.1:1", []string{"::1"}, "::1", true},
		"a connection without an address":       {"@", []string{"203.0.113.1"}, "invalid IP", false},
		"without an address and without a word": {"@", nil, "invalid IP", true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.from
		if tc.hops != nil {
			r.Header["X-Forwarded-For"] = tc.hops
		}
		got := s.clientOf(r)
		if got.Addr.String() != tc.want || got.Own != tc.own {
			t.Errorf("%s: %s, its own: %v; want %s, %v", name, got.Addr, got.Own, tc.want, tc.own)
		}
		if got := New(Options{}).clientOf(r).Addr; got != directAddr(r) {
			t.Errorf("%s: without trusted proxies it is %s", name, got)
		}
	}
}

// TestForwardedIsNotRead: a client cannot choose its address with headers that proxies pass on unread.
func TestForwardedIsNotRead(t *testing.T) {
	s := New(Options{TrustedProxies: proxies()})
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.1.2.3:1"
	r.Header.Set("Forwarded", "for=203.0.113.1;proto=https")
	r.Header.Set("X-Real-Ip", "203.0.113.1")
	if got := s.clientOf(r); got.Addr.String() != "10.1.2.3" || got.Own {
		t.Errorf("%s, its own: %v", got.Addr, got.Own)
	}
	if got, _ := s.scheme(r); got != "http" {
		t.Errorf("the scheme is %s", got)
	}
}

// TestClientScheme: only a trusted proxy's header decides whether the client used TLS.
func TestClientScheme(t *testing.T) {
	s := New(Options{TrustedProxies: proxies()})
	for name, tc := range map[string]struct {
		from  string
		proto []string
		want  string
	}{
		"no header":                {"10.1.2.3:1", nil, "http"},
		"a trusted proxy":          {"10.1.2.3:1", []string{"https"}, "https"},
		"in capitals":              {"10.1.2.3:1", []string{"HTTPS"}, "https"},
		"a client":                 {"192.0.2.7:1", []string{"https"}, "http"},
		"a client before a proxy":  {"10.1.2.3:1", []string{"https, http"}, "http"},
		"a client, another header": {"10.1.2.3:1", []string{"http", "https"}, "https"},
		"garbage":                  {"10.1.2.3:1", []string{"javascript"}, "http"},
		"empty":                    {"10.1.2.3:1", []string{""}, "http"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.from
		if tc.proto != nil {
			r.Header["X-Forwarded-Proto"] = tc.proto
		}
		if got, _ := s.scheme(r); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if got, _ := s.scheme(httptest.NewRequest("GET", "https://gw.example/", nil)); got != "https" {
		t.Errorf("the gateway's own TLS is %s", got)
	}
}

// FuzzForwardedFor: for any header the address is the rightmost untrusted one, or that of the connection.
func FuzzForwardedFor(f *testing.F) {
	for _, text := range []string{"", "203.0.113.1", "a, 203.0.113.1:80, 10.0.0.1", "[2001:db8::1]:443", "[::ffff:10.0.0.1]", "fe80::1%x", "\n", ",,,", "10.0.0.1,10.0.0.2"} {
		f.Add(text, "10.0.0.9")
		f.Add("198.51.100.1", text)
	}
	s := New(Options{TrustedProxies: proxies()})
	f.Fuzz(func(t *testing.T, first, second string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.1.2.3:1"
		r.Header = http.Header{"X-Forwarded-For": {first, second}}
		got := s.clientOf(r).Addr
		if got.Is4In6() || got.Zone() != "" || !got.IsValid() || got.IsUnspecified() {
			t.Fatalf("%q, %q: %s is not a client's address", first, second, got)
		}
		if got == directAddr(r) {
			return
		}
		var untrusted, trusted []netip.Addr
		for hop := range strings.SplitSeq(first+","+second, ",") {
			if addr, ok := parseHop(hop); ok && s.trusted(addr) {
				trusted = append(trusted, addr)
			} else if ok {
				untrusted = append(untrusted, addr)
			}
		}
		if len(untrusted) > 0 && got != untrusted[len(untrusted)-1] || len(untrusted) == 0 && got != trusted[0] {
			t.Fatalf("%q, %q: %s is not the rightmost untrusted address", first, second, got)
		}
		r.Header = http.Header{"X-Forwarded-For": {first + "," + second}}
		if joined := s.clientOf(r).Addr; joined != got {
			t.Fatalf("%q, %q: as one header it is %s", first, second, joined)
		}
	})
}
