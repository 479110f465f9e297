package conversation

import (
	"net/netip"
	"strings"
	"testing"

	"voicegw/internal/user"
)

// TestOwners: a conversation belongs to its user, in every form of the name; one without a name belongs to any caller
// that knows its id, if the id cannot be guessed.
func TestOwners(t *testing.T) {
	far, other, here := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("127.0.0.1")
	secret := NewID()
	for name, tc := range map[string]struct {
		owner string
		id    string
		who   user.User
		want  bool
	}{
		"no owner":                        {"", "c", user.Must("ada"), true},
		"its owner":                       {"ada", "c", user.Must("ada"), true},
		"another user":                    {"ada", secret, user.Must("eve"), false},
		"in another form":                 {" ａda ", "c", user.Must("ada"), true},
		"of an invalid name":              {"a\x00", "c", user.Must("ada"), false},
		"its address, a guessed id":       {"192.0.2.7", "c", user.Anonymous(far, true), false},
		"its address, a secret id":        {"192.0.2.7", secret, user.Anonymous(far, true), true},
		"at another address":              {"192.0.2.7", secret, user.Anonymous(other, true), true},
		"another address, a guessed id":   {"192.0.2.7", "c", user.Anonymous(other, true), false},
		"behind a proxy":                  {"anonymous:x", secret, user.Anonymous(far, false), true},
		"behind a proxy, a guessed id":    {"anonymous:x", "c", user.Anonymous(far, false), false},
		"on this machine":                 {"127.0.0.1", "c", user.Anonymous(here, true), true},
		"on this machine, from elsewhere": {"127.0.0.1", "c", user.Anonymous(far, true), false},
		"a name, without an owner":        {"192.0.2.7", secret, user.Must("ada"), false},
		"no name, with an owner":          {"ada", secret, user.Anonymous(here, true), false},
	} {
		c := New(tc.id, tc.owner, "", noon)
		if got := c.OwnedBy(tc.who); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if id := NewID(); len(id) < MinSecret+len("conv-") || !ValidID(id) || id == NewID() || strings.ToLower(id) != id {
		t.Errorf("an id is %q", id)
	}
}
