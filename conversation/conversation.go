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
	// RoleNotice is what the gateway has told the model: the outcome of a confirmation, a
	// session that began or ended.
	RoleNotice Role = "notice"
)

// Entry is one utterance, with the tools that were called in it.
type Entry struct {
	// At is when it began, UTC.
	At   time.Time `json:"at"`
	Side Side      `json:"side"`
	Role Role      `json:"role"`
	Text string    `json:"text,omitempty"`
	// System says of a RoleNotice that its words are the gateway's own, and not a tool's.
	System bool `json:"system,omitempty"`
	// Turn counts the user's turns of the conversation from 1, over both sides.
	Turn int `json:"turn,omitempty"`
	// SessionID is the voice session that it was said in; empty for text.
	SessionID string `json:"session_id,omitempty"`
	// Message names the message that the entry belongs to, for one that is sent again. It is
	// no secret and opens nothing; empty for what was said by voice.
	Message string `json:"message,omitempty"`
	// Interrupted says that the user cut it off: Text is what was heard of it.
	Interrupted bool `json:"interrupted,omitempty"`
	// Broken says that the model broke off: Text is what the user has read of it.
	Broken bool `json:"broken,omitempty"`
	// Extra is what came with the text beside it, for the model that it came from: nobody
	// else is shown it.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Calls are the tools that the assistant called, in the order they were asked for.
	Calls []Call `json:"calls,omitempty"`
}

// Call is one tool call and its answer.
type Call struct {
	// ID is the model's name of it, or the gateway's where it gave none.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Args is what the model wrote.
	Args json.RawMessage `json:"args,omitempty"`
	// Envelope is the answer; nil where only the call's outcome is kept.
	// It holds no secret: the question to the user has no token here.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	OK       bool            `json:"ok"`
	// Asked says that the user was asked for an approval, and that the call itself has done
	// nothing; what came of it is told later in the conversation.
	Asked bool `json:"asked,omitempty"`
	// Extra is what came with the call, as Entry.Extra.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Question names the question that the user was asked about the call, as
	// store.QuestionName does; it answers nothing. Empty if nobody was asked.
	Question string `json:"question,omitempty"`
}

// Outcome says in words for a model or a person how the call went.
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
	// Dropped is how many entries were cut off at the beginning, and Earlier says in
	// short what they were about.
	Dropped int     `json:"dropped,omitempty"`
	Earlier string  `json:"earlier,omitempty"`
	Entries []Entry `json:"entries"`
	// Policy is what policy has to know of the tool calls before (policy.Book.Carry): it is kept
	// beside the entries, because those are cut off at the beginning. Nil before the first.
	Policy    json.RawMessage `json:"policy,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// Told says whether the conversation has a word of the gateway's about the question of that
// reference: what came of it.
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
