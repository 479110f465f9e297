package conversation

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Side is the medium: text or voice.
type Side string

// The media.
const (
	SideText  Side = "text"
	SideVoice Side = "voice"
)

// Role is the speaker of an entry.
type Role string

// The speakers.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	// RoleNotice is a message from the gateway to the model: a confirmation's outcome, or the start or end of a
	// session.
	RoleNotice  Role = "notice"
	RoleContext Role = "context" // text that the user's page sent the model in a voice session; the user did not say it
)

// Entry is one utterance with its tool calls.
type Entry struct {
	At        time.Time `json:"at"` // the start time in UTC
	Side      Side      `json:"side"`
	Role      Role      `json:"role"`
	Text      string    `json:"text,omitempty"`
	System    bool      `json:"system,omitempty"`     // marks a RoleNotice as the gateway's own words, not a tool's
	Turn      int       `json:"turn,omitempty"`       // numbers the user's turns from 1, across text and voice
	SessionID string    `json:"session_id,omitempty"` // the voice session; empty for text
	// Message identifies the text message the entry belongs to, to recognise a repeat; it grants no access. Empty for
	// voice.
	Message     string `json:"message,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"` // means the user interrupted it; Text is the part heard
	Broken      bool   `json:"broken,omitempty"`      // means the model stopped early; Text is the part the user read
	// Extra is opaque data from the model that must be sent back to the same model only.
	Extra json.RawMessage `json:"extra,omitempty"`
	Calls []Call          `json:"calls,omitempty"` // the assistant's tool calls, in order
	// Spent is the turn's cost, and LatencyMS the user's wait for the first sound or words; zero if unknown. One entry
	// of each turn has them.
	Spent
	LatencyMS int64 `json:"latency_ms,omitempty"`
}

// Call is one tool call with its result.
type Call struct {
	ID   string          `json:"id"` // the model's, or the gateway's if the model set none
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"` // the arguments as the model wrote them
	// Envelope is the result; nil if only the outcome is kept. A confirmation in it has no token.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	OK       bool            `json:"ok"`
	// Asked means the user was asked for approval and the call had no effect; a later entry has the outcome.
	Asked bool            `json:"asked,omitempty"`
	Extra json.RawMessage `json:"extra,omitempty"` // opaque model data, like Entry.Extra
	// Question identifies the confirmation (store.QuestionName); it can't be used to answer. Empty without one.
	Question string `json:"question,omitempty"`
}

// Outcome describes the call's result for a model or a person.
func (c Call) Outcome() string {
	switch {
	case c.OK:
		return "ok"
	case c.Asked:
		return "asked for approval"
	}
	return "failed"
}

// Conversation is the stored state of one conversation.
type Conversation struct {
	ID    string `json:"id"`
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
	Turns int    `json:"turns"` // counts the user's turns
	// Dropped counts the entries removed from the start; Earlier summarises them.
	Dropped int     `json:"dropped,omitempty"`
	Earlier string  `json:"earlier,omitempty"`
	Past    *Past   `json:"past,omitempty"` // the digest of the removed entries; nil if none
	Entries []Entry `json:"entries"`
	// Policy is the policy's state about earlier tool calls (calls.Book.Carry), kept apart because old entries are
	// dropped. Nil before the first call.
	Policy    json.RawMessage `json:"policy,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// HasOutcome reports whether a gateway notice has the outcome of the confirmation or job with this reference.
func (c *Conversation) HasOutcome(reference string) bool { return HasOutcome(c.Entries, reference) }

var referenceIn = regexp.MustCompile(`\(reference ([^()\s]+)\)`)

// HasOutcome is Conversation.HasOutcome for a list of entries.
func HasOutcome(entries []Entry, reference string) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool {
		return e.Role == RoleNotice && e.System && strings.Contains(e.Text, "(reference "+reference+")")
	})
}

// The limits of a conversation.
const (
	MaxEntries = 400       // the number of entries kept
	MaxBytes   = 512 << 10 // the size of all entries as JSON
	MaxText    = 16_000    // the length of one entry's text in characters
	MaxID      = 128       // the length of a conversation ID in bytes
)
