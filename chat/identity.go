package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"voicegw/internal/conversation"
)

// How long a repeated message is recognised.
const (
	hashedLife = 2 * time.Minute // for a message without an id
	namedLife  = 24 * time.Hour  // for a message with an id. The ledger remembers side effects equally long.
)

// MaxMessageID limits a message's id, in bytes.
const MaxMessageID = 256

type identity struct {
	key          string // a hash, equal for each attempt at a message
	content      string // a hash of the text. The same key with other content is an error.
	conversation string // as requested; may be empty
	// named means that key comes from the client's id or from a whole conversation that the client keeps. Equal keys
	// are then the same message, regardless of later messages.
	named  bool
	single bool // the message can be sent only once, because it answers an approval request
	life   time.Duration
}

// identify identifies a message by its id or, without one, by its conversation and content, which includes a client's
// history. An error wraps ErrMessage: part of the request is invalid JSON.
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
	}{req.Message, req.Parts, req.token(), req.Confirmation != nil && req.Confirmation.Approved, req.History != nil,
		quoted(req.History), req.Settings, req.MaxOutput, req.Tools, req.ToolChoice, req.Parallel}
	content, err := hashed(said)
	if err != nil {
		return identity{}, fmt.Errorf("%w: encoding the message as JSON: %w", ErrMessage, err)
	}
	id := identity{content: content, conversation: req.ConversationID, named: req.ID != "" || req.History != nil,
		single: req.Confirmation != nil, life: hashedLife}
	switch {
	case req.ID != "":
		id.life = namedLife
		id.key, err = hashed([]any{"id", req.scope(), req.Vouched, req.Scopes, req.ID})
	default:
		id.key, err = hashed([]any{"content", req.scope(), req.Vouched, req.Scopes, req.ConversationID, content})
	}
	return id, err
}

func (i identity) other(than identity) bool {
	return i.content != than.content || i.conversation != "" && than.conversation != "" && i.conversation != than.conversation
}

// scope is the user within whom messages are identified. An anonymous user is identified by a secret: the message's id
// or its conversation. Without a secret, each request counts as a new user.
func (r Request) scope() string {
	switch {
	case !r.User.Anonymous():
	case len(r.ID) >= conversation.MinSecret:
		return ""
	case len(r.ConversationID) >= conversation.MinSecret:
		return "anonymous:" + r.ConversationID // no user's name begins like this
	}
	return r.User.String()
}

func (r Request) token() string {
	if r.Confirmation == nil {
		return ""
	}
	return r.Confirmation.Token
}

// quoted encodes call arguments as JSON strings, because a client's arguments may be invalid JSON.
func quoted(history []Message) []Message {
	out := slices.Clone(history)
	for i := range out {
		out[i].Calls = slices.Clone(out[i].Calls)
		for j := range out[i].Calls {
			text, _ := json.Marshal(string(out[i].Calls[j].Args)) // a string: cannot fail
			out[i].Calls[j].Args = text
		}
	}
	return out
}

func hashed(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
