package store

import (
	"regexp"
	"testing"
)

// TestSecretsOfTicketsCanBeTyped: one ticket in 64 began with a hyphen, and was parsed as a flag when typed after
// --ticket.
func TestSecretsOfTicketsCanBeTyped(t *testing.T) {
	form := regexp.MustCompile(`^[a-z2-7]{52}$`) // 256 bits, valid in a subprotocol
	for range 1000 {
		if secret := newSecret(); !form.MatchString(secret) {
			t.Fatalf("the secret %q has fewer than 256 bits, or characters that a command line or a subprotocol does not take", secret)
		}
	}
}
