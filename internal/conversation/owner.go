package conversation

import (
	"crypto/rand"
	"strings"

	"voicegw/internal/user"
)

// NewID returns a random conversation ID that can't be guessed.
func NewID() string { return "conv-" + strings.ToLower(rand.Text()) }

// MinSecret is the minimum ID length in bytes that grants a user without a name access to a conversation. The gateway's
// own IDs have 31 bytes, 26 of them random.
const MinSecret = 26

// May reports whether knowing an ID gives this user access. For unnamed remote users, only a long ID protects it.
func May(u user.User, id string) bool {
	return !u.Anonymous() || u.Local() || len(id) >= MinSecret
}

// OwnedBy reports whether u owns the conversation: its user is u, in any stored form of the name. An unnamed
// conversation belongs to unnamed users who know its ID, if May allows it; on the loopback address, to all local users.
func (c *Conversation) OwnedBy(u user.User) bool { return Owned(c.User, c.ID, u) }

// Owned is OwnedBy for a conversation's user and ID.
func Owned(identity, id string, u user.User) bool {
	if identity == "" {
		return true
	}
	owner, err := user.Stored(identity)
	switch {
	case err != nil:
		return false // stored under a name that is no longer valid
	case owner == u:
		return May(u, id)
	default:
		return owner.Anonymous() && u.Anonymous() && len(id) >= MinSecret
	}
}
