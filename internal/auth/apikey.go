package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"voicegw/internal/logging"
)

// An API key is vgk_<id>_<secret>: 8 digits and lower-case letters, and 256 random bits as base64url (RFC 4648, section
// 5).
const (
	Prefix = "vgk_"

	idChars     = 8
	secretBytes = 32
	secretChars = 43
)

// leastDistinct is the minimum of distinct bytes in a secret. One in 10^9 random keys has fewer, typed ones do.
const leastDistinct = 16

// KeyHash is the SHA-256 of a whole API key. A slow hash would add nothing for 256 random bits.
type KeyHash [sha256.Size]byte

func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }

// ParseKeyHash parses String's result. The error completes a sentence that begins with a setting's name.
func ParseKeyHash(text string) (KeyHash, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != sha256.Size {
		return KeyHash{}, errors.New("must be the SHA-256 of a key, as 64 digits of 0 to 9 and a to f; voicegw keys hash prints it")
	}
	return KeyHash(raw), nil
}

// APIKey is a plaintext API key: a secret. Formatting it shows only its ID.
type APIKey struct {
	id   string
	text string
}

// The errors of ParseAPIKey. None contains the key.
var (
	errKeyForm = errors.New("this is not an API key of voicegw, which looks like vgk_<8 characters>_<43 characters>; voicegw " +
		"keys new makes one")
	errKeyWeak = errors.New("this key is guessable: its secret repeats a few characters; make one with voicegw keys new")
)

// NewAPIKey makes a key.
func NewAPIKey() APIKey {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // never fails
	id := strings.ToLower(rand.Text()[:idChars])
	k := APIKey{id: id, text: Prefix + id + "_" + base64.RawURLEncoding.EncodeToString(raw)}
	logging.Made(logging.APIKey, k.text)
	return k
}

// ParseAPIKey parses a key. It rejects guessable keys.
func ParseAPIKey(text string) (APIKey, error) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(rest) != idChars+1+secretChars || rest[idChars] != '_' || !ValidKeyID(rest[:idChars]) {
		return APIKey{}, errKeyForm
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(rest[idChars+1:])
	if err != nil || len(raw) != secretBytes { // base64 skips line breaks, so the length may differ
		return APIKey{}, errKeyForm
	}
	seen := map[byte]struct{}{}
	for _, b := range raw {
		seen[b] = struct{}{}
	}
	if len(seen) < leastDistinct {
		return APIKey{}, errKeyWeak
	}
	return APIKey{id: rest[:idChars], text: text}, nil
}

// ValidKeyID reports whether id has the form of a key ID.
func ValidKeyID(id string) bool {
	return len(id) == idChars && !strings.ContainsFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// ID returns the key's ID, which is not secret.
func (k APIKey) ID() string { return k.id }

// Reveal returns the whole key.
func (k APIKey) Reveal() string { return k.text }

// Hash returns the hash of the whole key.
func (k APIKey) Hash() KeyHash { return sha256.Sum256([]byte(k.text)) }

func (k APIKey) String() string { return Prefix + k.id + "_…" }

// GoString redacts the secret.
func (k APIKey) GoString() string { return k.String() }
