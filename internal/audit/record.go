package audit

import (
	"encoding/json"
	"time"
	"voicegw/internal/cost"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Event says what a record is about.
type Event string

// The events.
const (
	// EventTool is one call of a tool, whatever its outcome.
	EventTool Event = "tool_execution"
	// EventConfirmation is the outcome of a confirmation that ran nothing: denied, expired. An
	// approved one appears in the record of the call that it ran.
	EventConfirmation Event = "confirmation"
	// EventIntent is an intent that the state controller refused.
	EventIntent Event = "intent_refused"
	// EventNote is what a tool has said of a call while it ran.
	EventNote Event = "tool_note"
	// EventJobStarted to EventJobTold are about long work that a call has begun, whose id is Job: that it was
	// begun, has ended, was cancelled, and that its conversation was told of its end.
	EventJobStarted   Event = "job_started"
	EventJobEnded     Event = "job_ended"
	EventJobCancelled Event = "job_cancelled"
	EventJobTold      Event = "job_told"
	// EventAgent is a change of agent: Agent goes on, From is the agent before, and Why is the reason.
	EventAgent Event = "agent_switched"
	// EventDamage is damage to the store's data that the operator has accepted. Why says what
	// was found, and what is in doubt.
	EventDamage Event = "damage_accepted"
	// EventSessionCost is what a voice session has used in one process, and EventTurnCost what a turn
	// by text has.
	EventSessionCost Event = "session_cost"
	EventTurnCost    Event = "turn_cost"
)

// Record is one line of the audit. Zero fields are left out, except those that every call has.
type Record struct {
	Event Event     `json:"event"`
	Time  time.Time `json:"time"` // UTC, ms

	ToolID      string `json:"toolId"`
	ToolVersion string `json:"toolVersion,omitempty"`
	// ToolVariant is the name of the version's own if it stands beside the tool's main one.
	ToolVariant     string        `json:"toolVariant,omitempty"`
	RegistryVersion string        `json:"registryVersion,omitempty"`
	Category        spec.Category `json:"category,omitempty"`
	Mode            spec.Mode     `json:"mode"`
	SessionID       string        `json:"sessionId"`
	UserID          string        `json:"userId,omitempty"`
	ConversationID  string        `json:"conversationId,omitempty"`
	Agent           string        `json:"agent,omitempty"`
	// AgentVersion is the version of the agent's document; empty for an agent of the configuration.
	AgentVersion string `json:"agentVersion,omitempty"`
	// From is the agent before, of EventAgent.
	From string `json:"from,omitempty"`
	// TurnID counts the user's turns of the session from 1.
	TurnID int `json:"turnId"`
	// CallID is the gateway's own name of the call, unique in the session; ProviderCallID is
	// the model's, empty if the model gave none.
	CallID string `json:"callId,omitempty"`
	// ParentCallID is the call whose tool has made this one; empty for a call of the model.
	ParentCallID   string `json:"parentCallId,omitempty"`
	ProviderCallID string `json:"providerCallId,omitempty"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Executor is "client" if the client runs the tool. By text this record then only says that the client
	// was asked to; by voice it says what the client has answered. It is empty for the gateway's own tools.
	Executor string `json:"executor,omitempty"`
	// BusinessKey is the tool's own key, hashed because it is made of arguments.
	BusinessKey string `json:"businessKey,omitempty"`

	DurationMS int64              `json:"durationMs"`
	OK         bool               `json:"ok"`
	ErrorType  registry.ErrorType `json:"errorType,omitempty"`
	// PartialSideEffects says that something may have been changed although the call failed.
	PartialSideEffects bool `json:"partialSideEffects,omitempty"`
	// Budget is the account of the call's turn after it.
	Budget  json.RawMessage             `json:"budget,omitempty"`
	Clamped map[string]registry.Clamped `json:"clamped,omitempty"`
	// CacheHit says that nothing ran: a stored or a shared answer was given. OriginalTurn is
	// the turn in which the answer was made.
	CacheHit     bool `json:"cacheHit"`
	OriginalTurn int  `json:"originalTurn,omitempty"`
	// Confirmation is "required", "approved", "denied", "expired" or "used" (somebody else
	// has answered); ConfirmedBy says who answered: "client", "api" or "spoken". Reference is
	// the short name of the confirmation, never its token.
	Confirmation string `json:"confirmation,omitempty"`
	ConfirmedBy  string `json:"confirmedBy,omitempty"`
	Reference    string `json:"reference,omitempty"`
	// Queued is how long the call waited before its handler began, and Waited how long the question was
	// open that a person has answered; zero if that is not known. They are for whoever counts, and are
	// not written.
	Queued time.Duration `json:"-"`
	Waited time.Duration `json:"-"`
	// Intents were applied, Refused were not, and Why says why not.
	Intents []registry.IntentType `json:"intents,omitempty"`
	Refused []registry.IntentType `json:"refusedIntents,omitempty"`
	Why     string                `json:"why,omitempty"`
	// Evidence are the ids of the records that a retrieval tool's answer gave to the model, in
	// their order, at most registry.MaxEvidence.
	Evidence []string `json:"evidence,omitempty"`
	// Note is what a tool calls that which has happened, and NoteData what it says of it, as JSON; only
	// in a record about that.
	Note     string          `json:"note,omitempty"`
	NoteData json.RawMessage `json:"noteData,omitempty"`
	// Job is the long work that the record is about.
	Job string `json:"job,omitempty"`
	// Delivered says that the answer was written to the model's connection.
	Delivered bool `json:"delivered"`
	// NotDelivered says why not: "cancelled", "superseded", "repeated", "session_over",
	// "not_sent", "client" (the client runs the tool, and brings the answer with its next
	// request) or "held" (the gateway's answer goes to the model together with the client's).
	NotDelivered string `json:"notDelivered,omitempty"`
	// Again says that the process that ran the call has died and may have written this record before. Then there are two
	// records with the same CallID and Time, although the call ran once.
	Again bool `json:"again,omitempty"`

	// Spent is what was used, and Prices the version of the price table; both only in a record about
	// that.
	Spent  *cost.Sum `json:"spent,omitempty"`
	Prices string    `json:"prices,omitempty"`
	// KeyID identifies the credentials with which it was used, if there were any.
	KeyID string `json:"keyId,omitempty"`

	// Written may be nil. A Log closes it once the record waits in no queue: each destination has written it, or has
	// counted it as dropped.
	Written chan struct{} `json:"-"`

	// Args are the arguments that ran, in canonical JSON. A Log writes them as configured, and
	// by default not at all.
	Args json.RawMessage `json:"args,omitempty"`
}

// Calls returns how many calls the turn had used of its budget after this one, and how many it
// may have. It returns false if the record has no account of them.
func (r Record) Calls() (used, limit int64, ok bool) {
	var account struct {
		Total *struct {
			Used  int64 `json:"used"`
			Limit int64 `json:"limit"`
		} `json:"total"`
	}
	if err := json.Unmarshal(r.Budget, &account); err != nil || account.Total == nil {
		return 0, 0, false
	}
	return account.Total.Used, account.Total.Limit, true
}
