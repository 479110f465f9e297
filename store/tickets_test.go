package store

import (
	"regexp"
	"testing"
)

// TestSecretsOfTicketsCanBeTyped: a ticket that began with a hyphen, as one in 64 did, was taken for another
// flag by whoever typed it after --ticket.
func TestSecretsOfTicketsCanBeTyped(t *testing.T) {
	form := regexp.MustCompile(`^[a-z2-7]{52}$`) // 256 bits, which may stand in a subprotocol
	for range 1000 {
		if secret := newSecret(); !form.MatchString(secret) {
			t.Fatalf("the secret %q has fewer than 256 bits, or characters that a command line or a subprotocol does not take", secret)
		}
	}
}
