package user

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TestOneNormalForm: all forms of a name are one user, and other names are other users.
func TestOneNormalForm(t *testing.T) {
	for want, spellings := range map[string][]string{
		"ada":                         {"ada", " ada", "ada\u2003", "\u00a0ada\u3000", "ａｄａ"},
		"Ada":                         {"Ada", "Ａda"},
		"Zoë":                         {"Zoë", "Zoe\u0308"},
		"fine":                        {"ﬁne"},
		"a b":                         {"a b", "a\u00a0b", "a\u2003b"},
		"日本 1":                        {"日本 １", "日本 1"},
		"ada@example.org":             {"ada@example.org", "ada＠example.org"},
		"☎ (5)":                       {"☎ ⑸"},
		"1.2.3":                       {"1.2.3"},
		strings.Repeat("x", MaxBytes): {strings.Repeat("x", MaxBytes)},
	} {
		for _, name := range spellings {
			u, err := Parse(name)
			if err != nil || u.String() != want || u.Anonymous() || u.IsZero() {
				t.Errorf("%q is %q, %v; want %q", name, u, err, want)
			}
			if again, err := Stored(u.String()); err != nil || again != u {
				t.Errorf("%q is stored as %q and read as %q, %v", name, u, again, err)
			}
		}
	}
}

// TestRefusedNames: each name is refused with a reason that does not quote it.
func TestRefusedNames(t *testing.T) {
	for name, reason := range map[string]string{
		"":                              "empty",
		" \u3000":                       "must not be blank",
		strings.Repeat("x", MaxBytes+1): "257 bytes",
		strings.Repeat("ﷺ", MaxBytes/3): "normal form",
		"ada\n":                         "U+000A", "\tada": "U+0009",
		"a\x00b":         "U+0000",
		"a\nb":           "U+000A",
		"a\x7fb":         "U+007F",
		"a\u0085b":       "U+0085",
		"a\u200bb":       "U+200B",
		"a\u200db":       "U+200D",
		"\ufeffada":      "U+FEFF",
		"ada\u202e":      "U+202E",
		"a\u2066b":       "U+2066",
		"a\u00adb":       "U+00AD",
		"a\u2028b":       "U+2028",
		"a\U000e0041b":   "U+E0041",
		"a\ufe0fb":       "U+FE0F",
		"a\U000e0100b":   "U+E0100",
		"a\u034fb":       "U+034F",
		"a\u115fb":       "U+115F",
		"a\u3164b":       "U+3164",
		"a\uffa0b":       "U+FFA0",
		"\u2800":         "U+2800",
		"a\ue000b":       "U+E000",
		"a\u0378b":       "U+0378",
		"\u0301a":        "combining",
		" \u0301a":       "combining",
		"a\xffb":         "UTF-8",
		"a\xed\xa0\x80b": "UTF-8",
		"a\ufffdb":       "U+FFFD",
		"anonymous:x":    "anonymous:",
		"Ａnonymous:x":    "anonymous:",
		"192.0.2.7":      "IP address",
		"１92.0.2.7":      "IP address",
		"2001:db8::1":    "IP address",
	} {
		u, err := Parse(name)
		var wrong *NameError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), reason) || !u.IsZero() {
			t.Errorf("%q is %q, %v; want an error with %q", name, u, err, reason)
		}
		if len(name) > 3 && err != nil && strings.Contains(err.Error(), name) && reason != "anonymous:" {
			t.Errorf("the error quotes the name: %v", err)
		}
	}
}

// TestAnonymous: an address identifies a user only if it is the client's own, and never a user with that name.
func TestAnonymous(t *testing.T) {
	addr, local := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("::ffff:127.0.0.1")
	u := Anonymous(addr, true)
	if u.String() != "192.0.2.7" || !u.Anonymous() || u.Local() || u != Anonymous(addr, true) {
		t.Errorf("%+v", u)
	}
	if l := Anonymous(local, true); l.String() != "127.0.0.1" || !l.Local() {
		t.Errorf("%+v", l)
	}
	for _, a := range []netip.Addr{addr, local, {}} {
		one, other := Anonymous(a, false), Anonymous(a, false)
		if one == other || one.Local() || !one.Anonymous() || !strings.HasPrefix(one.String(), nameless) {
			t.Errorf("behind a proxy at %s: %q and %q", a, one, other)
		}
		if again, err := Stored(one.String()); err != nil || again != one {
			t.Errorf("%q is read as %+v, %v", one, again, err)
		}
	}
	if again, err := Stored("192.0.2.7"); err != nil || again != u {
		t.Errorf("%+v, %v", again, err)
	}
}

// FuzzParse: an accepted name is in one normal form, visible, short enough and can be parsed again; every spelling with
// the same NFKC is the same user.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"ada", " Zoe\u0308", "ａ", "a\u200bb", "192.0.2.7", "anonymous:x", "ﷺ", "\xff", "a\u0301\u0301", "\u1100\u1161"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		u, err := Parse(name)
		if err != nil {
			if !u.IsZero() || !errors.As(err, new(*NameError)) || err.Error() == "" {
				t.Fatalf("%q: %+v, %v", name, u, err)
			}
			return
		}
		id := u.String()
		if id == "" || len(id) > MaxBytes || !utf8.ValidString(id) || !norm.NFKC.IsNormalString(id) || id != trimmed(id) || u.Anonymous() {
			t.Fatalf("%q became %q", name, id)
		}
		for _, r := range id {
			if r != ' ' && !unicode.IsPrint(r) {
				t.Fatalf("%q became %q, with %U", name, id, r)
			}
		}
		for _, form := range []string{id, " " + id, norm.NFD.String(id)} {
			if len(form) > MaxBytes {
				continue
			}
			if again, err := Parse(form); err != nil || again != u {
				t.Fatalf("%q is %q, and %q is %q, %v", name, u, form, again, err)
			}
		}
		if again, err := Stored(id); err != nil || again != u {
			t.Fatalf("%q is read as %q, %v", id, again, err)
		}
	})
}
