package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// minProviderID is the minimum length of a provider's id that counts as unique, less one.
const minProviderID = 8

// ProviderKey returns the idempotency key made from a provider's id; empty if the id is not
// reliably unique.
func ProviderKey(id string) string {
	if !trusted(id) {
		return ""
	}
	return "provider:" + id
}

// HashKey returns the idempotency key made from what a call asks for in its turn: asked is its
// arguments in canonical form.
func HashKey(tool, asked string, turn int) string {
	n := strconv.Itoa(turn)
	sum := sha256.Sum256([]byte(tool + asked + n))
	return "hash:" + n + ":" + hex.EncodeToString(sum[:])[:16]
}

// trusted reports whether a provider's id reliably identifies one call.
func trusted(id string) bool {
	if len(id) <= minProviderID {
		return false
	}
	name := strings.ToLower(id)
	for _, prefix := range []string{"call_", "call-", "fc_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return !strings.HasPrefix(name, "tmp") && !strings.HasPrefix(name, "temp")
}
