// Package conversation holds the transcript between a user and the agents of a gateway, by text and voice, in order of
// time. A [Conversation] is a plain value that its owner changes and the store saves. Its size is bounded: a summary
// replaces the oldest entries.
package conversation

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/internal/user"
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
	RoleNotice    Role = "notice"  // a message from the gateway to the model, such as a confirmation's outcome
	RoleContext   Role = "context" // text that the user's page sent the model in a voice session; the user did not say it
)

// Entry is one utterance with its tool calls.
type Entry struct {
	At          time.Time `json:"at"` // the start time in UTC
	Side        Side      `json:"side"`
	Role        Role      `json:"role"`
	Text        string    `json:"text,omitempty"`
	System      bool      `json:"system,omitempty"`      // marks a RoleNotice as the gateway's own words, not a tool's
	Turn        int       `json:"turn,omitempty"`        // numbers the user's turns from 1, across text and voice
	SessionID   string    `json:"session_id,omitempty"`  // the voice session; empty for text
	Message     string    `json:"message,omitempty"`     // of the text message, to recognise a repeat; grants no access
	Interrupted bool      `json:"interrupted,omitempty"` // the user interrupted it; Text is the part heard
	Broken      bool      `json:"broken,omitempty"`      // the model stopped early; Text is the part the user read
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
	Dropped   int             `json:"dropped,omitempty"`
	Earlier   string          `json:"earlier,omitempty"`
	Past      *Past           `json:"past,omitempty"` // the digest of the removed entries; nil if none
	Entries   []Entry         `json:"entries"`
	Policy    json.RawMessage `json:"policy,omitempty"` // of earlier calls (calls.Book.Carry); may be nil
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

// NewID returns a random conversation ID that can't be guessed.
func NewID() string { return "conv-" + strings.ToLower(rand.Text()) }

// MinSecret is the minimum ID length in bytes that grants a user without a name access to a conversation. The gateway's
// own IDs have 31 bytes, 26 of them random.
const MinSecret = 26

// May reports whether knowing an ID gives this user access. For unnamed remote users, only a long ID protects it.
func May(u user.User, id string) bool { return !u.Anonymous() || u.Local() || len(id) >= MinSecret }

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

// The limits of a Digest.
const (
	MaxTitle       = 80 // the length of the title in characters
	MaxDigestTools = 12 // the number of tools named
	maxPastTools   = 64 // the number of tools a Past counts
)

// Digest is the bounded description of a conversation in a list.
type Digest struct {
	ID    string `json:"id"`
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
	Title string `json:"title,omitempty"` // the start of the user's first words, on one line; empty without any
	Turns int    `json:"turns"`
	Modes []Side `json:"modes,omitempty"` // the media used: text, voice or both, in this order
	// Calls counts tool calls. Tools lists the most called tools first, at most MaxDigestTools.
	Calls int         `json:"calls,omitempty"`
	Tools []ToolCalls `json:"tools,omitempty"`
	Spent
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// ToolCalls counts the calls of one tool.
type ToolCalls struct {
	Tool  string `json:"tool"`
	Calls int    `json:"calls"`
}

// Spent is the cost of the models.
type Spent struct {
	CostUSDMicros int64 `json:"cost_usd_micros,omitempty"` // in millionths of a dollar, without unpriced usage
	Unpriced      int64 `json:"unpriced,omitempty"`        // counts usage reports without a known price
}

// Past is the digest of removed entries.
type Past struct {
	Title string         `json:"title,omitempty"`
	Text  bool           `json:"text,omitempty"`
	Voice bool           `json:"voice,omitempty"`
	Calls map[string]int `json:"calls,omitempty"`
	More  int            `json:"more,omitempty"` // counts calls of tools beyond maxPastTools
	Spent
}

// Digest returns a digest that shares no memory with c.
func (c *Conversation) Digest() Digest {
	all := c.Past.clone()
	for _, e := range c.Entries {
		all.take(e)
	}
	d := Digest{
		ID: c.ID, User: c.User, Agent: c.Agent, Title: all.Title, Turns: c.Turns, Calls: all.More, Spent: all.Spent,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
	if all.Text {
		d.Modes = append(d.Modes, SideText)
	}
	if all.Voice {
		d.Modes = append(d.Modes, SideVoice)
	}
	for tool, calls := range all.Calls {
		d.Calls += calls
		d.Tools = append(d.Tools, ToolCalls{Tool: tool, Calls: calls})
	}
	slices.SortFunc(d.Tools, func(a, b ToolCalls) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	d.Tools = d.Tools[:min(len(d.Tools), MaxDigestTools)]
	return d
}

func (p *Past) clone() *Past {
	if p == nil {
		return &Past{Calls: map[string]int{}}
	}
	own := *p
	if own.Calls = maps.Clone(p.Calls); own.Calls == nil {
		own.Calls = map[string]int{}
	}
	return &own
}

func (p *Past) take(e Entry) {
	if e.Role == RoleUser && p.Title == "" {
		p.Title = shorten(oneLine(e.Text), MaxTitle)
	}
	// Notices and page context are not speech: an approval over HTTP does not make a conversation a voice one.
	said := e.Role != RoleNotice && e.Role != RoleContext
	p.Text = p.Text || said && e.Side == SideText
	p.Voice = p.Voice || said && e.Side == SideVoice
	for _, call := range e.Calls {
		if p.Calls[call.Tool] == 0 && len(p.Calls) >= maxPastTools {
			p.More++
			continue
		}
		p.Calls[call.Tool]++
	}
	p.CostUSDMicros += e.CostUSDMicros
	p.Unpriced += e.Unpriced
}
