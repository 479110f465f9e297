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

// The form of an API key: vgk_<id>_<secret>. The id is 8 digits and lower-case letters, and no
// secret. The secret is 256 random bits in 43 characters of base64url (RFC 4648, section 5).
const (
	// Prefix is what each key begins with.
	Prefix = "vgk_"

	idChars     = 8
	secretBytes = 32
	secretChars = 43
)

// leastDistinct is how many different bytes a secret must have. Of 32 random bytes, fewer than 16
// differ once in 10^9 keys; what somebody has typed, or repeated, has fewer.
const leastDistinct = 16

// KeyHash is the SHA-256 of a whole API key. For a secret of 256 random bits a slow hash would protect
// nothing more.
type KeyHash [sha256.Size]byte

// String returns the hash in hexadecimal, as it stands in the configuration.
func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }

// ParseKeyHash reads what String returns. The error is the end of a sentence that begins with the name
// of a setting.
func ParseKeyHash(text string) (KeyHash, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != sha256.Size {
		return KeyHash{}, errors.New("must be the SHA-256 of a key, as 64 digits of 0 to 9 and a to f; voicegw keys hash prints it")
	}
	return KeyHash(raw), nil
}

// APIKey is an API key in clear: a secret. Printing it shows its id only.
type APIKey struct {
	id   string
	text string
}

// The errors of ParseAPIKey. None repeats the key.
var (
	errKeyForm = errors.New("this is not an API key of voicegw, which looks like vgk_<8 characters>_<43 characters>; voicegw keys new makes one")
	errKeyWeak = errors.New("this key could be guessed: its secret repeats a few characters; make one with voicegw keys new")
)

// NewAPIKey makes a key.
func NewAPIKey() APIKey {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // it never fails: crypto/rand ends the program instead
	id := strings.ToLower(rand.Text()[:idChars])
	k := APIKey{id: id, text: Prefix + id + "_" + base64.RawURLEncoding.EncodeToString(raw)}
	logging.Made(logging.APIKey, k.text)
	return k
}

// ParseAPIKey reads a key. A key that could be guessed is refused like one of another form.
func ParseAPIKey(text string) (APIKey, error) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(rest) != idChars+1+secretChars || rest[idChars] != '_' || !ValidKeyID(rest[:idChars]) {
		return APIKey{}, errKeyForm
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(rest[idChars+1:])
	if err != nil || len(raw) != secretBytes { // a line break would be skipped, and make it shorter
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

// ValidKeyID reports whether a text has the form of a key's id.
func ValidKeyID(id string) bool {
	return len(id) == idChars && !strings.ContainsFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// ID returns the key's id, which is not secret.
func (k APIKey) ID() string { return k.id }

// Reveal returns the whole key.
func (k APIKey) Reveal() string { return k.text }

// Hash returns the hash of the whole key.
func (k APIKey) Hash() KeyHash { return sha256.Sum256([]byte(k.text)) }

// String hides the secret.
func (k APIKey) String() string { return Prefix + k.id + "_…" }

// GoString hides the secret, too.
func (k APIKey) GoString() string { return k.String() }
