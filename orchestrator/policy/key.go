package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// minProviderID is the shortest provider's id that is taken for unique, less one.
const minProviderID = 8

// ProviderKey is the idempotency key of a call that the provider's id names for good; empty
// for an id that cannot be trusted to do so.
func ProviderKey(id string) string {
	if !trusted(id) {
		return ""
	}
	return "provider:" + id
}

// HashKey is the idempotency key of a call by what it asks for in its turn: asked are its
// arguments in canonical form.
func HashKey(tool, asked string, turn int) string {
	n := strconv.Itoa(turn)
	sum := sha256.Sum256([]byte(tool + asked + n))
	return "hash:" + n + ":" + hex.EncodeToString(sum[:])[:16]
}

// trusted says whether a provider's id names one call for good.
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
