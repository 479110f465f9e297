// Package user identifies a conversation's user, named or anonymous, and the time zone. Only [Parse], [Anonymous] and
// [Stored] create a [User], so it is always validated.
package user

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no zones of its own
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxBytes bounds a name in bytes, as given and normalised.
const MaxBytes = 256

// nameless begins an anonymous user's identity, and no name.
const nameless = "anonymous:"

// User is a conversation's user; the zero User is not a user. Users are comparable with ==, and may be used concurrently.
type User struct {
	id        string
	anonymous bool
	local     bool // at a loopback address that is the client's own
}

// NameError is the reason for rejecting a name, worded to follow a field's name.
type NameError struct{ Reason string }

func (e *NameError) Error() string { return e.Reason }

func refused(format string, args ...any) error { return &NameError{fmt.Sprintf(format, args...)} }

// Parse validates a name of printable, visible UTF-8 and normalises it to NFKC (Unicode Standard Annex 15). IP
// addresses and "anonymous:" are reserved for anonymous users. The error is a *NameError.
func Parse(name string) (User, error) {
	id, err := normal(name)
	if err != nil {
		return User{}, err
	}
	if len(id) >= len(nameless) && strings.EqualFold(id[:len(nameless)], nameless) {
		return User{}, refused("must not begin with %q, which is reserved for users without a name", nameless)
	}
	if _, err := netip.ParseAddr(id); err == nil {
		return User{}, refused("must not be an IP address, which is reserved for users without a name")
	}
	return User{id: id}, nil
}

// Anonymous returns the user at a client's own address, or a new one at a proxy's or a missing address.
func Anonymous(addr netip.Addr, own bool) User {
	addr = addr.Unmap().WithZone("")
	if !own || !addr.IsValid() {
		return User{id: nameless + strings.ToLower(rand.Text()), anonymous: true}
	}
	return User{id: addr.String(), anonymous: true, local: addr.IsLoopback()}
}

// Stored restores a User from String, also for operators, who name anonymous users. The error is a *NameError.
func Stored(identity string) (User, error) {
	id, err := normal(identity)
	if err != nil {
		return User{}, err
	}
	if strings.HasPrefix(id, nameless) {
		return User{id: id, anonymous: true}, nil
	}
	if addr, err := netip.ParseAddr(id); err == nil {
		return Anonymous(addr, true), nil
	}
	return Parse(id)
}

// Must is Stored for a constant identity. It panics if that is invalid.
func Must(identity string) User {
	u, err := Stored(identity)
	if err != nil {
		panic("user: the identity " + err.Error())
	}
	return u
}

// String returns the user's identity: the normalised name, or an anonymous user's identity; empty for the zero User.
func (u User) String() string { return u.id }

// Equal reports whether u == v.
func (u User) Equal(v User) bool { return u == v }

// IsZero reports whether u is the zero User.
func (u User) IsZero() bool { return u.id == "" }

// Anonymous reports whether u has no name.
func (u User) Anonymous() bool { return u.anonymous }

// Local reports whether u is an anonymous user on this machine.
func (u User) Local() bool { return u.local }

func normal(name string) (string, error) {
	switch {
	case name == "":
		return "", refused("must not be empty")
	case len(name) > MaxBytes:
		return "", refused("has %d bytes; the maximum is %d", len(name), MaxBytes)
	case !utf8.ValidString(name):
		return "", refused("must be valid UTF-8")
	}
	// Also check the name as given: normalisation removes some invisible characters.
	if err := visible(trimmed(name)); err != nil {
		return "", err
	}
	id := trimmed(norm.NFKC.String(name))
	if len(id) > MaxBytes {
		return "", refused("has %d bytes in its normal form (NFKC); the maximum is %d", len(id), MaxBytes)
	}
	return id, visible(id)
}

// trimmed removes surrounding spaces, but not control characters such as line feeds.
func trimmed(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.Is(unicode.Zs, r) })
}

func visible(text string) error {
	if text == "" {
		return refused("must not be blank")
	}
	first := true
	for at, r := range text {
		switch {
		case r == utf8.RuneError:
			return refused("must be valid UTF-8 (U+FFFD at byte %d replaces invalid bytes)", at)
		case unicode.Is(unicode.Zs, r):
		case !unicode.IsPrint(r), unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), unseen[r]:
			return refused("has an invisible character (%U at byte %d)", r, at)
		case first && unicode.IsMark(r):
			return refused("begins with a combining mark (%U), which needs a letter before it", r)
		}
		first = false
	}
	return nil
}

// unseen are invisible characters of visible categories: combining grapheme joiner, Khmer inherent vowels, blank
// Braille.
var unseen = map[rune]bool{0x034F: true, 0x17B4: true, 0x17B5: true, 0x2800: true}

// maxName exceeds every name in the IANA time zone database.
const maxName = 64

// LoadZone returns an IANA time zone. An empty name and the machine-dependent Local are errors.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" || len(name) > maxName {
		return nil, fmt.Errorf("zone: %.*q is not an IANA time zone; write one such as Europe/Berlin or UTC", maxName, name)
	}
	found, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone: %q is not a known IANA time zone; write one such as Europe/Berlin or UTC", name)
	}
	return found, nil
}

// ZoneHere returns this machine's IANA time zone, from TZ in environ or /etc/localtime; empty if unknown.
func ZoneHere(environ []string) string {
	name, set := "", false
	for _, variable := range environ {
		if value, is := strings.CutPrefix(variable, "TZ="); is {
			name, set = value, true
		}
	}
	if !set {
		target, err := os.Readlink("/etc/localtime")
		if err != nil {
			return ""
		}
		_, name, _ = strings.Cut(target, "zoneinfo/")
	}
	name = strings.TrimPrefix(name, ":")
	if _, err := LoadZone(name); err != nil {
		return ""
	}
	return name
}

// ZoneOr returns the named zone, or other if the name is empty or unknown.
func ZoneOr(name string, other *time.Location) *time.Location {
	if found, err := LoadZone(name); err == nil {
		return found
	}
	return other
}
