package audit

import (
	"encoding/json"
	"time"
	"voicegw/internal/cost"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Event is the kind of a record.
type Event string

// The events.
const (
	// EventTool is one call of a tool, whatever its outcome.
	EventTool Event = "tool_execution"
	// EventConfirmation is a question to a person that was denied or has expired. The record of the call shows an
	// approval.
	EventConfirmation Event = "confirmation"
	// EventIntent is an intent that the state controller refused.
	EventIntent Event = "intent_refused"
	// EventNote is a note that a tool wrote about its running call.
	EventNote Event = "tool_note"
	// EventJobStarted to EventJobTold are about the job named in Job, which a call started. EventJobTold means that
	// the conversation knows the result.
	EventJobStarted   Event = "job_started"
	EventJobEnded     Event = "job_ended"
	EventJobCancelled Event = "job_cancelled"
	EventJobTold      Event = "job_told"
	// EventAgent is a change of agent: From is the previous agent, Agent the new one, and Why the reason.
	EventAgent Event = "agent_switched"
	// EventDamage means that the operator accepted damage to the store's data. Why describes the damage and the data
	// in doubt.
	EventDamage Event = "damage_accepted"
	// EventSessionCost has the usage of a voice session in one process, EventTurnCost that of a text turn.
	EventSessionCost Event = "session_cost"
	EventTurnCost    Event = "turn_cost"
)

// Record is one line of the audit, with its keys in the order of the fields. Zero fields are left out, except those
// that every call has.
type Record struct {
	Event Event     `json:"event"`
	Time  time.Time `json:"time"` // UTC, ms

	ToolID      string `json:"toolId"`
	ToolVersion string `json:"toolVersion,omitempty"`
	// ToolVariant is the name of a version that runs in parallel with the tool's main version.
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
	From         string `json:"from,omitempty"` // the previous agent, of EventAgent
	// TurnID counts the user's turns of the session from 1.
	TurnID int `json:"turnId"`
	ToolCall

	DurationMS int64              `json:"durationMs"`
	OK         bool               `json:"ok"`
	ErrorType  registry.ErrorType `json:"errorType,omitempty"`
	// PartialSideEffects means that the failed call may have changed something.
	PartialSideEffects bool `json:"partialSideEffects,omitempty"`
	// Budget is the account of the call's turn after it.
	Budget  json.RawMessage             `json:"budget,omitempty"`
	Clamped map[string]registry.Clamped `json:"clamped,omitempty"`
	// CacheHit means that nothing ran, because a stored or shared answer was used. OriginalTurn is the turn that made
	// the answer.
	CacheHit     bool `json:"cacheHit"`
	OriginalTurn int  `json:"originalTurn,omitempty"`
	Approval
	// Queued is how long the call waited before its handler began, for metrics; it is not written.
	Queued time.Duration `json:"-"`
	// Why is the reason why Refused were not applied.
	Intents []registry.IntentType `json:"intents,omitempty"` // applied
	Refused []registry.IntentType `json:"refusedIntents,omitempty"`
	Why     string                `json:"why,omitempty"`
	// Evidence are the ids of the records in a retrieval tool's answer, in their order, at most registry.MaxEvidence.
	Evidence []string `json:"evidence,omitempty"`
	// Note is the tool's name for an EventNote, and NoteData its JSON.
	Note     string          `json:"note,omitempty"`
	NoteData json.RawMessage `json:"noteData,omitempty"`
	Job      string          `json:"job,omitempty"`
	// Delivered means that the answer was written to the model's connection.
	Delivered bool `json:"delivered"`
	// NotDelivered says why not: "cancelled", "superseded", "repeated", "session_over",
	// "not_sent", "client" (the client runs the tool, and brings the answer with its next
	// request) or "held" (the gateway's answer goes to the model together with the client's).
	NotDelivered string `json:"notDelivered,omitempty"`
	// Again means that the process that ran the call may also have written this record: it has died, or handed the
	// session over before its audit log had written everything. Two records with the same CallID and Time are then one
	// call.
	Again bool `json:"again,omitempty"`
	Usage

	// Written may be nil. A Log closes it when no queue holds the record any more: each destination has written it or
	// counted it as dropped.
	Written chan struct{} `json:"-"`

	// Args are the arguments that ran, in canonical JSON. A Log writes them as configured; by default it does not.
	Args json.RawMessage `json:"args,omitempty"`
}

// ToolCall identifies a call of a tool.
type ToolCall struct {
	// CallID is the gateway's id of the call, unique in the session; ProviderCallID is the model's, if it gave one.
	CallID string `json:"callId,omitempty"`
	// ParentCallID is the call whose tool made this one; empty for a call by the model.
	ParentCallID   string `json:"parentCallId,omitempty"`
	ProviderCallID string `json:"providerCallId,omitempty"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Executor is "client" if the client runs the tool; empty otherwise. By voice the record has the client's result;
	// by text it only means that the gateway asked the client.
	Executor string `json:"executor,omitempty"`
	// BusinessKey is the tool's own key, hashed because it is made of arguments.
	BusinessKey string `json:"businessKey,omitempty"`
}

// Approval is a person's answer to the question whether a call may run.
type Approval struct {
	// Confirmation is "required", "approved", "denied", "expired" or "used" (another answer came first).
	Confirmation string `json:"confirmation,omitempty"`
	// ConfirmedBy is the way in which the answer came: "client", "api" or "spoken".
	ConfirmedBy string `json:"confirmedBy,omitempty"`
	// Reference is the short name of the question, never its token.
	Reference string `json:"reference,omitempty"`
	// Waited is how long the question was open, for metrics; zero if unknown. It is not written.
	Waited time.Duration `json:"-"`
}

// Usage is the usage of a voice session or a text turn; other records have none.
type Usage struct {
	Spent  *cost.Sum `json:"spent,omitempty"`
	Prices string    `json:"prices,omitempty"` // version of the price table
	// KeyID identifies the caller's credentials, if there were any.
	KeyID string `json:"keyId,omitempty"`
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
