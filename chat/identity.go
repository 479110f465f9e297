package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"voicegw/conversation"
)

// The time within which a message that is sent again is the same message.
const (
	// hashedLife is how long a message without an id is known.
	hashedLife = 2 * time.Minute
	// namedLife is that of one with an id. The ledger remembers as long.
	namedLife = 24 * time.Hour
)

// MaxMessageID is the longest id of a message, in bytes.
const MaxMessageID = 256

// identity says which message a request is.
type identity struct {
	// key is the same for each try of a message, and a hash.
	key string
	// content is what is said, as a hash: a key with another content is a mistake.
	content      string
	conversation string // as asked for; may be empty
	// named says that the key is of an id that the client gave, or of a whole conversation that
	// it keeps: equal keys are the same message, whatever was said since.
	named bool
	// single says that the message can be sent once anyway: it answers a question.
	single bool
	life   time.Duration
}

// identify says which message a request is: that of its id, else that of its conversation and
// its content. A conversation that the client keeps is part of the content.
//
// The error wraps ErrMessage: something of the request is no JSON that has to be.
func identify(req Request) (identity, error) {
	said := struct {
		Message  string
		Parts    []Part
		Token    string
		Approved bool
		Keeps    bool
		History  []Message
		Settings map[string]json.RawMessage
		Most     int
		Tools    []Tool
		Choice   json.RawMessage
		Parallel *bool
	}{req.Message, req.Parts, req.token(), req.Confirmation != nil && req.Confirmation.Approved, req.History != nil, quoted(req.History), req.Settings, req.MaxOutput, req.Tools, req.ToolChoice, req.Parallel}
	content, err := hashed(said)
	if err != nil {
		return identity{}, fmt.Errorf("%w: the message cannot be written as JSON: %w", ErrMessage, err)
	}
	id := identity{content: content, conversation: req.ConversationID, named: req.ID != "" || req.History != nil, single: req.Confirmation != nil, life: hashedLife}
	switch {
	case req.ID != "":
		id.life = namedLife
		id.key, err = hashed([]any{"id", req.scope(), req.Vouched, req.Scopes, req.ID})
	default:
		id.key, err = hashed([]any{"content", req.scope(), req.Vouched, req.Scopes, req.ConversationID, content})
	}
	return id, err
}

// other says that a message with the same key is another one.
func (i identity) other(than identity) bool {
	return i.content != than.content || i.conversation != "" && than.conversation != "" && i.conversation != than.conversation
}

// scope is within whom messages are told apart: a user's name or address. Somebody without
// either is known by a secret alone, as in conversation.May: the message's id, or else its
// conversation. Without a secret, a client is somebody else each time.
func (r Request) scope() string {
	switch {
	case !r.User.Anonymous():
	case len(r.ID) >= conversation.MinSecret:
		return ""
	case len(r.ConversationID) >= conversation.MinSecret:
		return "anonymous:" + r.ConversationID // as no name begins
	}
	return r.User.String()
}

func (r Request) token() string {
	if r.Confirmation == nil {
		return ""
	}
	return r.Confirmation.Token
}

// quoted are messages whose calls' arguments are texts: as a client tells them, they need not
// be JSON.
func quoted(history []Message) []Message {
	out := slices.Clone(history)
	for i := range out {
		out[i].Calls = slices.Clone(out[i].Calls)
		for j := range out[i].Calls {
			text, _ := json.Marshal(string(out[i].Calls[j].Args)) // a text: it cannot fail
			out[i].Calls[j].Args = text
		}
	}
	return out
}

// hashed is the SHA-256 of a value's JSON.
func hashed(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
