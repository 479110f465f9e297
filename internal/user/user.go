// Package user identifies the user of a conversation, named or anonymous, and the user's time zone.
//
// Only this package makes a [User]: [Parse] from the name that a client gives, [Anonymous] from the address of a client
// without a name, and [Stored] from a stored identity. So a function that takes a User never gets an unchecked name.
package user

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxBytes is the longest name, in bytes, as given and in its normal form.
const MaxBytes = 256

// nameless begins the identity of an anonymous user. No name begins with it.
const nameless = "anonymous:"

// User is the user of a conversation. The zero User is nobody. Users are compared with ==,
// and may be used concurrently.
type User struct {
	id        string
	anonymous bool
	local     bool // at an address of this machine that is the client's own
}

// NameError says why a name is refused, in words that follow the name of a field.
type NameError struct{ Reason string }

// Error returns the reason. It does not quote the name.
func (e *NameError) Error() string { return e.Reason }

func refused(format string, args ...any) error { return &NameError{fmt.Sprintf(format, args...)} }

// Parse makes a User from a name from outside. A name is 1 to MaxBytes bytes of UTF-8 that can
// be printed and seen: letters, digits, punctuation, symbols, single combining marks and
// inner spaces. It is kept in its normal form, which is NFKC (Unicode Standard Annex 15)
// without surrounding spaces; upper and lower case stay different. IP addresses and texts that
// begin with "anonymous:" are not valid names: both identify anonymous users. The error is a
// *NameError.
func Parse(name string) (User, error) {
	id, err := normal(name)
	if err != nil {
		return User{}, err
	}
	if len(id) >= len(nameless) && strings.EqualFold(id[:len(nameless)], nameless) {
		return User{}, refused("must not begin with %q, which stands for users without a name", nameless)
	}
	if _, err := netip.ParseAddr(id); err == nil {
		return User{}, refused("must not be an IP address, which stands for users without a name")
	}
	return User{id: id}, nil
}

// Anonymous returns the anonymous user at an address. If the address is the client's own,
// every client at that address is the same user. If it is a proxy's, or missing, each call
// returns a new user, who is not linked to any other.
func Anonymous(addr netip.Addr, own bool) User {
	addr = addr.Unmap().WithZone("")
	if !own || !addr.IsValid() {
		return User{id: nameless + strings.ToLower(rand.Text()), anonymous: true}
	}
	return User{id: addr.String(), anonymous: true, local: addr.IsLoopback()}
}

// Stored makes a User from an identity that String returned, for stored data and for
// operators, who also name anonymous users. The error is a *NameError.
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

// Must is Stored for an identity that is written in the program. It panics for an invalid one.
func Must(identity string) User {
	u, err := Stored(identity)
	if err != nil {
		panic("user: the identity " + err.Error())
	}
	return u
}

// String returns the user's identity: the name in its normal form, or the identity of an
// anonymous user. It is empty for nobody.
func (u User) String() string { return u.id }

// Equal reports whether two users are the same, as == does.
func (u User) Equal(v User) bool { return u == v }

// IsZero reports whether u is nobody.
func (u User) IsZero() bool { return u.id == "" }

// Anonymous reports whether u has no name.
func (u User) Anonymous() bool { return u.anonymous }

// Local reports whether u is an anonymous user at this machine.
func (u User) Local() bool { return u.local }

// normal returns the normal form of a name, or an error if the name is invalid.
func normal(name string) (string, error) {
	switch {
	case name == "":
		return "", refused("must not be empty")
	case len(name) > MaxBytes:
		return "", refused("has %d bytes; at most %d are taken", len(name), MaxBytes)
	case !utf8.ValidString(name):
		return "", refused("must be valid UTF-8")
	}
	// Check the name as given, too: the normal form has lost some invisible characters.
	if err := visible(trimmed(name)); err != nil {
		return "", err
	}
	id := trimmed(norm.NFKC.String(name))
	if len(id) > MaxBytes {
		return "", refused("has %d bytes in its normal form (NFKC); at most %d are taken", len(id), MaxBytes)
	}
	return id, visible(id)
}

// trimmed returns a text without surrounding spaces. Control characters, such as line feeds,
// are not spaces.
func trimmed(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.Is(unicode.Zs, r) })
}

// visible reports what is invisible in a text.
func visible(text string) error {
	if text == "" {
		return refused("must have something but spaces")
	}
	first := true
	for at, r := range text {
		switch {
		case r == utf8.RuneError:
			return refused("must be valid UTF-8 (U+FFFD at byte %d stands for what was not)", at)
		case unicode.Is(unicode.Zs, r):
		case !unicode.IsPrint(r), unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), unseen[r]:
			return refused("has a character that cannot be seen (%U at byte %d)", r, at)
		case first && unicode.IsMark(r):
			return refused("begins with a combining mark (%U), which needs a letter before it", r)
		}
		first = false
	}
	return nil
}

// unseen are characters that are invisible although their category suggests otherwise: the
// combining grapheme joiner, Khmer inherent vowels and the blank Braille pattern. Other
// invisible characters are format characters or have the properties that visible checks.
var unseen = map[rune]bool{0x034F: true, 0x17B4: true, 0x17B5: true, 0x2800: true}
