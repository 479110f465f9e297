package conversation

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Side is how something was said.
type Side string

// The sides.
const (
	SideText  Side = "text"
	SideVoice Side = "voice"
)

// Role is who said it.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	// RoleNotice is something that the gateway told the model: the outcome of a confirmation,
	// the beginning or end of a session.
	RoleNotice Role = "notice"
	// RoleContext is something that the user's page told the model in a voice session, and the user has not said.
	RoleContext Role = "context"
)

// Entry is one utterance, with the tools that were called in it.
type Entry struct {
	// At is when it began, UTC.
	At   time.Time `json:"at"`
	Side Side      `json:"side"`
	Role Role      `json:"role"`
	Text string    `json:"text,omitempty"`
	// System says that the words of a RoleNotice are the gateway's own and not a tool's.
	System bool `json:"system,omitempty"`
	// Turn counts the user's turns of the conversation from 1, over both sides.
	Turn int `json:"turn,omitempty"`
	// SessionID is the voice session in which it was said; empty for text.
	SessionID string `json:"session_id,omitempty"`
	// Message names the message that the entry belongs to, for a message that is sent again.
	// It is not a secret and opens nothing; empty for voice.
	Message string `json:"message,omitempty"`
	// Interrupted says that the user interrupted it: Text is the part that was heard.
	Interrupted bool `json:"interrupted,omitempty"`
	// Broken says that the model stopped in the middle: Text is the part that the user read.
	Broken bool `json:"broken,omitempty"`
	// Extra is data that the model sent beside the text and wants back. It is shown only to
	// that model.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Calls are the tools that the assistant called, in the order they were asked for.
	Calls []Call `json:"calls,omitempty"`
	// Spent is what its turn has cost, and LatencyMS how long the user waited in it for the first
	// sound or the first words; zero if it is not known. One entry of a turn has them.
	Spent
	LatencyMS int64 `json:"latency_ms,omitempty"`
}

// Call is one tool call and its answer.
type Call struct {
	// ID is the model's name for it, or the gateway's if the model gave none.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Args is what the model wrote.
	Args json.RawMessage `json:"args,omitempty"`
	// Envelope is the answer; nil if only the call's outcome is kept. It holds no secret: the
	// question to the user has no token here.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	OK       bool            `json:"ok"`
	// Asked says that the user was asked for approval and that the call itself did nothing; a
	// later entry tells the outcome.
	Asked bool `json:"asked,omitempty"`
	// Extra is data that the model sent beside the call, like Entry.Extra.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Question names the question that the user was asked about the call, as
	// store.QuestionName does; it cannot be used to answer. Empty if nobody was asked.
	Question string `json:"question,omitempty"`
}

// Outcome describes in words, for a model or a person, how the call went.
func (c Call) Outcome() string {
	switch {
	case c.OK:
		return "ok"
	case c.Asked:
		return "asked for approval"
	}
	return "failed"
}

// Conversation is everything that is kept of one conversation.
type Conversation struct {
	ID    string `json:"id"`
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Turns is how many turns of the user there have been.
	Turns int `json:"turns"`
	// Dropped is how many entries were removed at the beginning, and Earlier is a short form
	// of what they were about.
	Dropped int    `json:"dropped,omitempty"`
	Earlier string `json:"earlier,omitempty"`
	// Past is what a Digest tells of the removed entries; nil if none was removed.
	Past    *Past   `json:"past,omitempty"`
	Entries []Entry `json:"entries"`
	// Policy is what the policy must know about earlier tool calls (calls.Book.Carry). It is
	// kept apart from the entries, because the oldest entries are removed. Nil before the first.
	Policy    json.RawMessage `json:"policy,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// Told says whether the conversation has a notice of the gateway with the outcome of the
// question of that reference.
func (c *Conversation) Told(reference string) bool { return Told(c.Entries, reference) }

// referenceIn finds the reference of the question that a notice is about.
var referenceIn = regexp.MustCompile(`\(reference ([^()\s]+)\)`)

// Told is Conversation.Told for some entries.
func Told(entries []Entry, reference string) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool {
		return e.Role == RoleNotice && e.System && strings.Contains(e.Text, "(reference "+reference+")")
	})
}

// The bounds of a conversation.
const (
	// MaxEntries is how many entries are kept.
	MaxEntries = 400
	// MaxBytes is how many bytes the JSON of all entries may have.
	MaxBytes = 512 << 10
	// MaxText is the longest text of one entry, in characters.
	MaxText = 16_000
	// MaxID is the longest id of a conversation, in bytes.
	MaxID = 128
)
