package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"

	"voicegw/prompts"
	"voicegw/registry/document"
)

// Tools get the following capabilities as fields of their Needs. All are safe for concurrent use.

// Messenger sends messages to the session's client. It is available in every call, and does nothing without a client
// or after the call.
type Messenger interface {
	Timeout(until time.Time, d time.Duration, message string)
	// Send sends the tool's own message (tool.message), with data as JSON. Models don't get it. An error wraps
	// ErrNotTaken: name isn't one to three words of lower-case letters, digits and underscores, joined by dots; data
	// has no JSON or more than MaxAside bytes; or the call has sent MaxAsides messages.
	Send(name string, data any) error
}

// Progress reports a tool's progress. It is available in every call, and does nothing after the call.
type Progress interface {
	// Tell shows the client the current step (tool.progress), in at most MaxProgress characters, and the completed
	// fraction from 0 to 1, or less than 0 if unknown. It never blocks and may be called at any rate: the client gets
	// the newest at most twice a second. Voice models that support it get the text occasionally.
	Tell(text string, fraction float64)
}

// MaxProgress limits the text of Progress.Tell, in characters; longer texts are truncated.
const MaxProgress = 200

// Audit writes to the audit log, in addition to the call's record. It is available in every call, and does nothing
// after the call.
type Audit interface {
	// Note writes a tool_note record with a name for the event, and data as JSON, which must not contain secrets or
	// what was said. The error is that of Messenger.Send.
	Note(event string, data any) error
}

// Limits of a call's messages to the client and of its notes.
const (
	// MaxAsides is the maximum number of messages, and of notes.
	MaxAsides = 32
	// MaxAside limits the JSON of each, in bytes.
	MaxAside = 8 << 10
)

// Blocks blocks users.
type Blocks interface {
	// Block blocks a user until the given time, on all nodes. A longer block remains. The error wraps ErrUser or
	// ErrFull, or means that the block could not be saved; then nothing has changed.
	Block(ctx context.Context, user string, until time.Time) error
}

// VoiceSessions creates voice sessions that clients are invited to.
type VoiceSessions interface {
	// Offer creates a voice session and its only ticket. It replaces the conversation's previous unused offer, with
	// its ticket. The error is ErrVoiceActive while the conversation has a running voice session, wraps ErrUser or
	// ErrFull, or means that nothing was saved.
	Offer(ctx context.Context, request VoiceRequest) (VoiceOffer, error)
}

// VoiceRequest describes a new voice session.
type VoiceRequest struct {
	UserID string
	// Vouched means that a trusted caller named the user. Scopes are that caller's grants.
	Vouched bool
	Scopes  []string
	// ConversationID is the conversation to continue; empty means the user's only one.
	ConversationID string
	Agent          string
	// PendingRequest is the request that the voice agent answers first; may be empty.
	PendingRequest string
	// Said is the transcript of a conversation that only its client keeps. It is saved for the voice session, unless
	// the conversation is already stored.
	Said []Utterance
	// Origin is the only origin with pages that may use the ticket; empty allows any client.
	Origin    string
	Guarantor Guarantor
}

// Guarantor is the principal behind a request; a voice session started by it counts against its limits. Zero means
// unknown.
type Guarantor struct {
	// ID is the principal's, and Mark distinguishes its different credentials (auth.Principal). Either may be empty.
	ID, Mark string
	// Expires is when the credentials end; zero means never.
	Expires time.Time
}

// Utterance is a text message of the user or the assistant.
type Utterance struct {
	Assistant bool
	Text      string
}

// VoiceOffer is a voice session that waits for its client.
type VoiceOffer struct {
	// SessionID begins with "voice-".
	SessionID      string
	ConversationID string
	PendingRequest string
	// Ticket opens the session once. It is the client's secret, which models and logs must never get.
	Ticket string
	// ExpiresAt is the ticket's expiry, UTC.
	ExpiresAt time.Time
}

// Inviter invites the client of the current text conversation to a voice session (voice_session_start). It is
// available in text mode, and does nothing after the response has ended.
type Inviter interface {
	Invite(offer VoiceOffer)
	// Origin is the client's page, the only one that may use a ticket made for it; empty if the client isn't a page.
	Origin() string
	Guarantor() Guarantor
	// Said returns the transcript of a conversation that only its client keeps, oldest first; nil if the gateway
	// keeps it.
	Said() []Utterance
}

// Gallery shows images to the client of the current text conversation (ui.image). It is available in text mode, and
// does nothing after the response has ended.
type Gallery interface {
	Show(image Image)
}

// Image is an image of a tool that the gateway stores for a limited time.
type Image struct {
	// ID is secret: anyone who knows it can fetch the image.
	ID     string
	URL    string
	Prompt string
	// Width and Height are in pixels.
	Width, Height int
	// ExpiresAt is when the gateway deletes the image, UTC.
	ExpiresAt time.Time
}

// Errors of capabilities that a tool can distinguish.
var (
	// ErrNotTaken is wrapped if a message or a note is not as it may be, or one too many.
	ErrNotTaken = errors.New("it was not accepted")
	// ErrFull is wrapped if no more entries may be recorded. Trying again later may help.
	ErrFull = errors.New("the maximum number is recorded")
	// ErrUser is wrapped if the user is empty or too long.
	ErrUser        = errors.New("the user is empty or too long")
	ErrVoiceActive = errors.New("a voice session is running already")
)

// Stream sends parts of a tool's data to the client of a text conversation while the tool works. It is available in text
// mode, and does nothing after the call. Models get only the Result, which alone is checked against the output schema.
type Stream interface {
	// Part sends the next part as JSON (a tool.message named PartName with a [Part]). It never blocks. An error wraps
	// ErrNotTaken: the data has no JSON or more than MaxAside bytes, or the call has sent MaxParts parts or MaxStream bytes.
	Part(data any) error
}

// PartName is the name of messages with parts, which [Messenger.Send] rejects.
const PartName = "result.part"

// Limits of a call's parts.
const (
	// MaxParts is the maximum number.
	MaxParts = 64
	// MaxStream limits their total JSON, in bytes.
	MaxStream = 256 << 10
)

// Part is a part of a tool's data.
type Part struct {
	// Part counts from 1. Another 1 means that the call was repeated, and replaces the earlier parts.
	Part int             `json:"part"`
	Data json.RawMessage `json:"data"`
}

// NewPart checks the next part of a call that has sent that many parts and bytes, by the rules of [Stream.Part].
func NewPart(data any, parts, bytes int) (Part, error) {
	encoded, err := aside(PartName, data)
	switch {
	case err != nil:
		return Part{}, err
	case parts >= MaxParts:
		return Part{}, fmt.Errorf("registry: %w: this call has already given the maximum of %d parts", ErrNotTaken, MaxParts)
	case bytes+len(encoded) > MaxStream:
		return Part{}, fmt.Errorf("registry: %w: the parts of this call have more than %d bytes of JSON", ErrNotTaken, MaxStream)
	}
	return Part{Part: parts + 1, Data: encoded}, nil
}

// Tools lets a tool call other tools of its session, with the rules for a model's calls. It is available in every
// call, and refuses calls after the call.
type Tools interface {
	// Call calls a tool with arguments that encode to a JSON object (nil means none), and waits for its answer. It
	// counts against the turn's budget. It refuses more than MaxNested calls or MaxDepth levels, recursion, and a
	// tool that writes if the caller doesn't. A tool that requires approval gets CONFIRMATION_REQUIRED unless the
	// calling call was approved. Intents of the called tool are not applied.
	Call(ctx context.Context, tool string, args any) Envelope
}

// Limits of nested calls.
const (
	// MaxNested limits the nested calls of a model's call.
	MaxNested = 8
	// MaxDepth limits the nesting, including the model's call.
	MaxDepth = 3
)

// Into decodes the answer's data into v, or returns the failure as an error for the handler to return: a *[ToolError]
// of the same type, but PERMANENT for a tool that requires approval.
func (e Envelope) Into(v any) error {
	if e.OK {
		if err := json.Unmarshal(e.Data, v); err != nil {
			return fmt.Errorf("registry: the answer of %s cannot be read: %w", e.Meta.Tool, err)
		}
		return nil
	}
	told := e.Error
	if told == nil {
		told = &Error{Type: ErrorInternal}
	}
	failed := &ToolError{
		Type: told.Type, Message: told.Message, Retryable: told.Retryable, PartialSideEffects: told.PartialSideEffects,
		Repeatable: told.Repeatable, Suggestion: told.Suggestion,
	}
	if told.Details != nil {
		failed.Details = told.Details
	}
	if failed.Type == ErrorConfirmationRequired {
		failed.Type = ErrorPermanent
	}
	return failed
}

// CallCapabilities are the types of the capabilities in every call and mode. The caller of [Prepared.Run] passes a
// value of each, or one that implements all; otherwise they have no effect.
func CallCapabilities() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[Messenger](), reflect.TypeFor[Progress](), reflect.TypeFor[Audit](), reflect.TypeFor[Tools]()}
}

type apart struct{}

func (apart) Timeout(time.Time, time.Duration, string) {}

func (apart) Tell(string, float64) {}

func (apart) Send(name string, data any) error {
	_, err := Aside(name, data)
	return err
}

func (apart) Note(event string, data any) error {
	_, err := Aside(event, data)
	return err
}

func (apart) Part(data any) error {
	_, err := NewPart(data, 0, 0)
	return err
}

// Call refuses: there is no conversation whose tools could be called.
func (apart) Call(_ context.Context, tool string, _ any) Envelope {
	return Envelope{Error: NewError(ErrorPermanent, prompts.NoNestedCalls(tool)),
		Meta: Meta{Tool: document.Shorten(tool, 100), ResponseSchemaVersion: ResponseSchemaVersion}}
}

var asideForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}(\.[a-z][a-z0-9_]{0,39}){0,2}$`)

// Aside checks a message by the rules of [Messenger.Send], and returns the data as JSON. The error wraps ErrNotTaken.
func Aside(name string, data any) (json.RawMessage, error) {
	if name == PartName {
		return nil, fmt.Errorf("registry: %w: the name %q is reserved for parts of an answer; give them with "+
			"Stream.Part", ErrNotTaken, PartName)
	}
	return aside(name, data)
}

func aside(name string, data any) (json.RawMessage, error) {
	if !asideForm.MatchString(name) {
		return nil, fmt.Errorf("registry: %w: the name %s must be one to three words of lower-case letters, digits and "+
			"underscores, joined by dots, as in \"order.packed\"", ErrNotTaken, document.Show(name))
	}
	encoded, err := document.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("registry: %w: the data of %q cannot be written as JSON: %w", ErrNotTaken, name, err)
	}
	if len(encoded) > MaxAside {
		return nil, fmt.Errorf("registry: %w: the data of %q has %d bytes of JSON, and at most %d are allowed", ErrNotTaken,
			name, len(encoded), MaxAside)
	}
	return encoded, nil
}

// ProgressText returns a text of Progress.Tell for display: on one line, without invisible characters, at most
// MaxProgress long.
func ProgressText(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text))
	if runes := []rune(text); len(runes) > MaxProgress {
		text = string(runes[:MaxProgress-1]) + "…"
	}
	return text
}

// TooManyAsides is the error for a message or note beyond MaxAsides; what names the kind.
func TooManyAsides(what string) error {
	return fmt.Errorf("registry: %w: this call has already given the maximum of %d %s", ErrNotTaken, MaxAsides, what)
}

// Agents lets a tool read, create and change the gateway's agents. Errors are *ToolError and list all problems. It is
// safe for concurrent use.
type Agents interface {
	// List returns at most limit agents, sorted by id.
	List(limit int) AgentList
	// Get returns an agent. A NOT_FOUND error suggests similar ids.
	Get(id string) (AgentShown, error)
	// Check returns the error of Save for the same change, without saving.
	Check(change AgentChange) error
	// Save creates or changes an agent. The error is CONFLICT if it isn't in change.State, or already exists.
	Save(ctx context.Context, change AgentChange) (AgentSaved, error)
	// CheckDelete returns the error of Delete, without deleting.
	CheckDelete(id, state string) error
	// Delete removes an agent's edits if it is in that state; an empty state matches any. The error is CONFLICT if
	// other agents switch to it.
	Delete(ctx context.Context, id, state string) (AgentDeleted, error)
}

// AgentChange is a change of an agent. Nil fields don't change.
type AgentChange struct {
	// ID is the agent's id. Empty creates an agent with an id from its name.
	ID string
	// State is the version that the caller has seen; empty matches any.
	State                       string
	Name, Description, Playbook *string
	// Tools are ids of tools. Unknown ones are dropped and reported, unless all are unknown.
	Tools []string
	By    string
}

// AgentLine is an agent in a list.
type AgentLine struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Enabled     bool   `json:"enabled"`
	// Source is "configuration", "file" or "store".
	Source string `json:"source"`
	State  string `json:"state"`
}

// AgentList is a list of agents.
type AgentList struct {
	Agents []AgentLine `json:"agents"`
	// Total counts all agents. Default is the agent for clients that choose none.
	Total   int    `json:"total"`
	Default string `json:"default"`
}

// AgentShown is an agent with its instructions.
type AgentShown struct {
	AgentLine
	Playbook string   `json:"playbook"`
	Tools    []string `json:"tools"`
	AllTools bool     `json:"all_tools,omitempty"`
	SwitchTo []string `json:"switch_to,omitempty"`
	UsedBy   []string `json:"used_by,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// AgentSaved is the result of a change.
type AgentSaved struct {
	AgentLine
	Created      bool          `json:"created"`
	Tools        []string      `json:"tools"`
	AllTools     bool          `json:"all_tools,omitempty"`
	InvalidTools []InvalidName `json:"invalid_tools,omitempty"`
}

// InvalidName is a dropped name and the reason.
type InvalidName struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// AgentDeleted is the result of a deletion.
type AgentDeleted struct {
	ID string `json:"id"`
	// Stays means that the agent still exists without its edits, from a file or the configuration.
	Stays bool `json:"stays"`
}
