package origin

import (
	"net/netip"
	"strings"
	"testing"
)

// TestParseHost: equivalent hosts are equal, and odd ones are refused.
func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{
		"localhost": "localhost", "LOCALHOST:8080": "localhost:8080", "localhost.:80": "localhost:80", "localhost:": "localhost",
		"voice.example.com": "voice.example.com", "my_host-1": "my_host-1", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"127.0.0.1:8080": "127.0.0.1:8080", "[::1]": "[::1]", "[0:0::1]:8080": "[::1]:8080", "[::ffff:127.0.0.1]": "127.0.0.1",
		"localhost:65535": "localhost:65535", "localhost:0080": "localhost:80",
	} {
		if got, err := ParseHost(text); err != nil || got.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".", ":8080", "a..b", ".a", "a..", "user@localhost", "user:pass@localhost", "localhost:80:80", "localhost:65536", "localhost:0",
		"localhost:-1", "localhost:+80", "localhost:8o", "localhost:99999999999999999999", "::1", "[::1", "[::1]8080", "[127.0.0.1]", "[fe80::1%25eth0]",
		"[fe80::1%eth0]", "[]", "a b", "a/b", "a?b", "a#b", `a\b`, "a,b", "bücher.example", "a\x00b", "a%2eb", "*", "127.1", "2130706433", "0x7f000001", "1.2.3.4.5", "127.0.0.0x1",
		strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a",
	} {
		if got, err := ParseHost(text); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// TestHosts: loopback names always match, also the listening address and the configured names.
func TestHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		listen string
		named  []string
		allow  string // separated by spaces
		refuse string
	}{
		"no allowed names": {
			allow:  "localhost localhost:8080 LocalHost. a.localhost 127.0.0.1 127.8.9.1:1 [::1]:8080 [::ffff:127.0.0.1]",
			refuse: "evil.test evil.test:8080 localhost.evil.test localhostevil.test notlocalhost 127.0.0.1.evil.test 127.evil.test 192.168.1.2 0.0.0.0 [::] [::2] local",
		},
		"one address": {listen: "192.168.1.2", allow: "192.168.1.2:8080 localhost [::ffff:192.168.1.2]", refuse: "192.168.1.3 evil.test [::2]"},
		"all of IPv4": {listen: "0.0.0.0", allow: "192.168.1.2 203.0.113.9:80 [2001:db8::1]", refuse: "evil.test 192.168.1.2.evil.test"},
		"all of IPv6": {listen: "::", allow: "192.168.1.2 [2001:db8::1]:1", refuse: "evil.test"},
		"names": {
			named:  []string{"voice.example.com", "*.apps.example.com", "only.example.com:8443", "203.0.113.9", "tls.example.com:443"},
			allow:  "voice.example.com voice.example.com:99 VOICE.example.com. a.apps.example.com a.b.apps.example.com only.example.com:8443 203.0.113.9:1 tls.example.com",
			refuse: "example.com apps.example.com evilapps.example.com only.example.com only.example.com:80 voice.example.com.evil.test 203.0.113.8",
		},
		"every": {named: []string{"*"}, allow: "evil.test 192.0.2.1"},
	} {
		hosts := Hosts{}
		if tc.listen != "" {
			hosts.Listen = netip.MustParseAddr(tc.listen)
		}
		for _, text := range tc.named {
			p, err := ParseHostPattern(text)
			if err != nil {
				t.Fatal(err)
			}
			hosts.Patterns = append(hosts.Patterns, p)
		}
		for i, list := range []string{tc.allow, tc.refuse} {
			for text := range strings.FieldsSeq(list) {
				h, err := ParseHost(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if hosts.Allow(h) != (i == 0) {
					t.Errorf("%s: %s is allowed: %t", name, text, i != 0)
				}
			}
		}
	}
	for _, text := range []string{"", "a.*", "*a.example", "*.*", "*.127.0.0.1", "*.", "https://a", "a:*", "*:x", "::1", "a@b"} {
		if _, err := ParseHostPattern(text); err == nil {
			t.Errorf("%q is a pattern", text)
		}
	}
}

// TestParse: an origin has one form, and invalid text is refused.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"https://app.example.com": "https://app.example.com", "HTTPS://App.Example.com:443": "https://app.example.com", "http://a:443": "http://a:443",
		"http://localhost:80": "http://localhost", "http://[::1]:8080": "http://[::1]:8080", "capacitor://localhost": "capacitor://localhost",
	} {
		o, err := Parse(text)
		if err != nil || o.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, o, err, want)
		}
	}
	for _, text := range []string{
		"", "null", "NULL", "a", "//a", "://a", "https:a", "https:/a", "https://", "https://a/", "https://a/b", "https://u@a", "https://a?b", "https://a#b",
		"https://a, https://b", "https://a https://b", "1http://a", "ht tp://a", "file:///x", "\x00", "https://*.a", "https://a:0",
	} {
		if o, err := Parse(text); err == nil {
			t.Errorf("%q is %q", text, o)
		}
	}
}

// TestPattern: scheme, host and port all count.
func TestPattern(t *testing.T) {
	for text, tc := range map[string]struct {
		bare, every    bool
		match, foreign string
	}{
		"https://app.example.com":      {match: "https://app.example.com https://APP.example.com:443", foreign: "http://app.example.com https://app.example.com:8443 https://a.app.example.com https://app.example.com.evil.test http://app.example.com:443"},
		"app.example.com":              {bare: true, match: "https://app.example.com", foreign: "http://app.example.com"},
		"localhost:3000":               {bare: true, match: "https://localhost:3000", foreign: "http://localhost:3000"},
		"https://*.example.com":        {match: "https://a.example.com https://a.b.example.com", foreign: "https://example.com http://a.example.com https://evilexample.com https://a.example.com:1"},
		"http://localhost:*":           {match: "http://localhost http://localhost:3000", foreign: "https://localhost http://a.localhost:3000"},
		"https://*":                    {every: true, match: "https://evil.test", foreign: "http://evil.test https://evil.test:1"},
		"*":                            {every: true, match: "https://evil.test http://evil.test:1 capacitor://localhost"},
		"capacitor://localhost":        {match: "capacitor://localhost", foreign: "https://localhost http://localhost"},
		"http://[::1]:8080":            {match: "http://[0::1]:8080", foreign: "http://[::1] http://127.0.0.1:8080"},
		"chrome-extension://abcdefghi": {match: "chrome-extension://abcdefghi", foreign: "chrome-extension://abcdefghj"},
	} {
		p, bare, err := ParsePattern(text)
		if err != nil || bare != tc.bare || p.Every() != tc.every {
			t.Errorf("%s: bare %t, every %t, %v", text, bare, p.Every(), err)
		}
		for i, list := range []string{tc.match, tc.foreign} {
			for o := range strings.FieldsSeq(list) {
				parsed, err := Parse(o)
				if err != nil {
					t.Fatalf("%s: %v", o, err)
				}
				if p.Match(parsed) != (i == 0) {
					t.Errorf("%s matches %s: %t", text, o, i != 0)
				}
			}
		}
	}
	for _, text := range []string{"", "null://", "https://", "https://a/", "https://a/b", "https://a:1:*", "a:*:1", "https://a*", "app-?.example.com", "[a]", "https://u@a", "://a", "ht tp://a"} {
		if p, _, err := ParsePattern(text); err == nil {
			t.Errorf("%q is the pattern %+v", text, p)
		}
	}
}

// FuzzParse: any Host, Origin or configured text is handled without a crash; an accepted one can be written and read
// again as the same name.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"localhost:8080", "http://[::1]:80", "null", "https://*.example.com:*", "a.", "127.1", "*", "*:1", "[::ffff:1.2.3.4]:5", "x://y:65536"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := ParseHost(text); err == nil {
			again, err := ParseHost(h.String())
			if err != nil || again != h {
				t.Errorf("%q is %+v, and again %+v, %v", text, h, again, err)
			}
			if h.Loopback() && !strings.Contains(strings.ToLower(text), "localhost") && !h.IP.IsLoopback() {
				t.Errorf("%q counts as this machine", text)
			}
			if strings.ContainsAny(text, "@/?#\\% ") {
				t.Errorf("%q is a host", text)
			}
		}
		if o, err := Parse(text); err == nil {
			again, err := Parse(o.String())
			if err != nil || again != o {
				t.Errorf("%q is %+v, and again %+v, %v", text, o, again, err)
			}
			p, bare, err := ParsePattern(o.String())
			if err != nil || bare || !p.Match(o) || p.Every() {
				t.Errorf("%q is a pattern that does not match itself: %v", text, err)
			}
		}
		if p, err := ParseHostPattern(text); err == nil && !p.Every() && p.Match(Host{Name: "evil.test"}) && !strings.Contains(strings.ToLower(text), "test") {
			t.Errorf("%q allows every origin", text)
		}
		if p, _, err := ParsePattern(text); err == nil && p.Every() && !strings.Contains(text, "*") {
			t.Errorf("%q allows every origin", text)
		}
	})
}
