package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"voicegw/registry"
)

// minProviderID is the shortest provider's id that is taken for unique, less one.
const minProviderID = 8

// keyOf is the idempotency key of a call: the provider's id where that can be trusted,
// else a hash of what is asked for in this turn.
func keyOf(c Call, canonical string) string {
	if trusted(c.ProviderID) {
		return providerKey(c.ProviderID)
	}
	return hashKey(c, canonical)
}

func providerKey(id string) string { return "provider:" + id }

func hashKey(c Call, canonical string) string {
	turn := strconv.Itoa(c.Turn)
	sum := sha256.Sum256([]byte(c.Tool + canonical + turn))
	return "hash:" + turn + ":" + hex.EncodeToString(sum[:])[:16]
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

// canonical is the form of arguments in which equal ones are equal text. What is no
// JSON stands for itself.
func canonical(args json.RawMessage) string {
	args = bytes.TrimSpace(args)
	if len(args) == 0 {
		return "{}"
	}
	c, err := registry.Canonical(args)
	if err != nil {
		return string(args)
	}
	return string(c)
}
