package conversation

import (
	"crypto/rand"
	"strings"

	"voicegw/internal/user"
)

// NewID returns a random id for a conversation. It cannot be guessed.
func NewID() string { return "conv-" + strings.ToLower(rand.Text()) }

// MinSecret is the shortest id, in bytes, that lets a user without a name into a conversation.
// The gateway's own ids have 31 bytes, 26 of them random.
const MinSecret = 26

// May says whether knowing an id is enough for a user to use the conversation. A user with a
// name is kept apart by the name, and this machine's own address by its owner; for any other
// user without a name only the id is a protection, so it must be impossible to guess.
func May(u user.User, id string) bool {
	return !u.Anonymous() || u.Local() || len(id) >= MinSecret
}

// OwnedBy says whether a conversation is a user's: begun under the user's name, in whatever
// form the name was kept. A conversation that was begun without a name belongs to the users
// without a name who know its id, if May allows it; on this machine's address, to whoever
// works there.
func (c *Conversation) OwnedBy(u user.User) bool { return Owned(c.User, c.ID, u) }

// Owned is OwnedBy for the conversation of that id that was begun under an identity.
func Owned(identity, id string, u user.User) bool {
	if identity == "" {
		return true
	}
	owner, err := user.Stored(identity)
	switch {
	case err != nil:
		return false // kept under a name that is invalid today
	case owner == u:
		return May(u, id)
	default:
		return owner.Anonymous() && u.Anonymous() && len(id) >= MinSecret
	}
}
