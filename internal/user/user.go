// Package user says who speaks: somebody with a name, or somebody without one.
//
// A [User] is made only here, by [Parse] of what a client calls its user, by [Anonymous]
// of where a client without a name comes from, and by [Stored] of what was kept. So
// whatever takes a User cannot be given a name that nobody has checked.
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

// nameless begins the identity of somebody of whom nothing is known. No name begins so.
const nameless = "anonymous:"

// User is who speaks. The zero User is nobody. Users are compared with ==, and may be used
// by several goroutines.
type User struct {
	id        string
	anonymous bool
	local     bool // at an address of this machine, which is the client's own
}

// NameError says why a name is refused, in words that follow the name of a field.
type NameError struct{ Reason string }

// Error is the reason. It does not quote the name.
func (e *NameError) Error() string { return e.Reason }

func refused(format string, args ...any) error { return &NameError{fmt.Sprintf(format, args...)} }

// Parse makes a User of a name from outside. A name is 1 to MaxBytes bytes of UTF-8 that can
// be printed and seen: letters, digits, punctuation, symbols, single combining marks and
// spaces within. It is kept in its normal form, which is NFKC (Unicode Standard Annex 15)
// without spaces around; upper and lower case stay different. IP addresses are no names, and
// nothing that begins with "anonymous:" is: both stand for users without one. The error is a
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

// Anonymous is somebody without a name at an address. Where the address is the client's own,
// whoever comes from it is the same user. Where it is a proxy's, or there is none, each call
// makes another one, whom nothing joins to anybody else.
func Anonymous(addr netip.Addr, own bool) User {
	addr = addr.Unmap().WithZone("")
	if !own || !addr.IsValid() {
		return User{id: nameless + strings.ToLower(rand.Text()), anonymous: true}
	}
	return User{id: addr.String(), anonymous: true, local: addr.IsLoopback()}
}

// Stored makes a User of an identity as String gave it, for what was kept and for operators,
// who also speak of users without a name. The error is a *NameError.
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

// String is the user's identity: the name in its normal form, or what stands for a user
// without one. Empty for nobody.
func (u User) String() string { return u.id }

// Equal says whether two users are the same one, as == does.
func (u User) Equal(v User) bool { return u == v }

// IsZero says whether u is nobody.
func (u User) IsZero() bool { return u.id == "" }

// Anonymous says whether u is somebody without a name.
func (u User) Anonymous() bool { return u.anonymous }

// Local says whether u is somebody without a name at this machine: whoever works on it.
func (u User) Local() bool { return u.local }

// normal is the normal form of a name, or why there is none.
func normal(name string) (string, error) {
	switch {
	case name == "":
		return "", refused("must not be empty")
	case len(name) > MaxBytes:
		return "", refused("has %d bytes; at most %d are taken", len(name), MaxBytes)
	case !utf8.ValidString(name):
		return "", refused("must be valid UTF-8")
	}
	// As given, too: the normal form has lost some of what cannot be seen.
	if err := visible(trimmed(name)); err != nil {
		return "", err
	}
	id := trimmed(norm.NFKC.String(name))
	if len(id) > MaxBytes {
		return "", refused("has %d bytes in its normal form (NFKC); at most %d are taken", len(id), MaxBytes)
	}
	return id, visible(id)
}

// trimmed is a text without spaces around it. Control characters, such as line feeds, are no
// spaces.
func trimmed(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.Is(unicode.Zs, r) })
}

// visible says what of a text cannot be seen.
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

// unseen are characters that show nothing although their category says otherwise: the
// combining grapheme joiner, Khmer inherent vowels and the blank Braille pattern. The other
// ones are format characters or have the properties that visible asks for.
var unseen = map[rune]bool{0x034F: true, 0x17B4: true, 0x17B5: true, 0x2800: true}
