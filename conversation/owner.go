package conversation

import (
	"crypto/rand"
	"strings"

	"voicegw/internal/user"
)

// NewID draws an id for a conversation, which nobody can guess.
func NewID() string { return "conv-" + strings.ToLower(rand.Text()) }

// MinSecret is the shortest id by which somebody without a name may know a conversation, in
// bytes. The gateway's own ids have 31, 26 of them random.
const MinSecret = 26

// May says whether a user may know a conversation by an id at all. A name keeps others from
// a conversation, and on this machine its owner does; for somebody else without a name only
// the id can, so it must be one that nobody guesses.
func May(u user.User, id string) bool {
	return !u.Anonymous() || u.Local() || len(id) >= MinSecret
}

// OwnedBy says whether a conversation is a user's: whose name it was begun under, in
// whatever form it was kept. One that was begun without a name belongs to those without a
// name who know its id, where May lets them; on this machine's address, to whoever works
// there.
func (c *Conversation) OwnedBy(u user.User) bool { return Owned(c.User, c.ID, u) }

// Owned is OwnedBy for what was begun under an identity in the conversation of that id.
func Owned(identity, id string, u user.User) bool {
	if identity == "" {
		return true
	}
	owner, err := user.Stored(identity)
	switch {
	case err != nil:
		return false // kept under a name that nobody can have any more
	case owner == u:
		return May(u, id)
	default:
		return owner.Anonymous() && u.Anonymous() && len(id) >= MinSecret
	}
}
