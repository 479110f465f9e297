package audit

import (
	"crypto/sha256"
	"encoding/hex"
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
	EventTool Event = "tool_execution"
	// EventConfirmation is a question to a person that was denied or expired; an approval is in the call's record.
	EventConfirmation Event = "confirmation"
	EventIntent       Event = "intent_refused"
	EventNote         Event = "tool_note"
	// EventJobStarted to EventJobTold are about Job. EventJobTold means that the conversation knows the result.
	EventJobStarted   Event = "job_started"
	EventJobEnded     Event = "job_ended"
	EventJobCancelled Event = "job_cancelled"
	EventJobTold      Event = "job_told"
	EventAgent        Event = "agent_switched"
	// EventClaim is a statement of the assistant that it has done something that no call explains.
	EventClaim Event = "claim_unmatched"
	// EventExact is the end of an exact sentence: it was heard whole (OK), in part or not at all.
	EventExact Event = "exact_sentence"
	// EventStopped is an answer of the assistant that a check has stopped.
	EventStopped Event = "answer_stopped"
	// EventDamage means that the operator accepted the damage to the store's data in Why.
	EventDamage Event = "damage_accepted"
	// EventSessionCost has the usage of a voice session in one process, EventTurnCost that of a text turn.
	EventSessionCost Event = "session_cost"
	EventTurnCost    Event = "turn_cost"
)

// Record is one line of the audit, in the order of the fields. Zero fields are left out, except those of every call.
type Record struct {
	Event Event     `json:"event"`
	Time  time.Time `json:"time"` // UTC, ms

	ToolID          string        `json:"toolId"`
	ToolVersion     string        `json:"toolVersion,omitempty"`
	ToolVariant     string        `json:"toolVariant,omitempty"`
	RegistryVersion string        `json:"registryVersion,omitempty"`
	Category        spec.Category `json:"category,omitempty"`
	Mode            spec.Mode     `json:"mode"`
	Channel         string        `json:"channel,omitempty"` // "mcp" if an MCP client made the call; otherwise empty
	SessionID       string        `json:"sessionId"`
	UserID          string        `json:"userId,omitempty"`
	ConversationID  string        `json:"conversationId,omitempty"`
	Agent           string        `json:"agent,omitempty"`
	AgentVersion    string        `json:"agentVersion,omitempty"`
	From            string        `json:"from,omitempty"` // the previous agent, of EventAgent
	// TurnID counts the user's turns of the session from 1.
	TurnID int `json:"turnId"`
	ToolCall

	DurationMS int64              `json:"durationMs"`
	OK         bool               `json:"ok"`
	ErrorType  registry.ErrorType `json:"errorType,omitempty"`
	// PartialSideEffects means that the failed call may have changed something.
	PartialSideEffects bool                        `json:"partialSideEffects,omitempty"`
	Budget             json.RawMessage             `json:"budget,omitempty"`
	Clamped            map[string]registry.Clamped `json:"clamped,omitempty"`
	// CacheHit means that a stored or shared answer, made by OriginalTurn, was used.
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
	ToolNote
	Job string `json:"job,omitempty"`
	Statement
	// Delivered means that the answer was written to the model's connection.
	Delivered bool `json:"delivered"`
	// NotDelivered says why not: "cancelled", "superseded", "repeated", "session_over", "not_sent", "client" (the
	// client runs the tool) or "held" (the answer goes to the model together with the client's).
	NotDelivered string `json:"notDelivered,omitempty"`
	// Again means that the process that ran the call may also have written this record: it has died, or handed the
	// session over before its audit log had written everything. Two records with the same CallID and Time are then one
	// call.
	Again bool `json:"again,omitempty"`
	Usage

	// A Log closes Written, if not nil, when each destination has written the record or counted it as dropped.
	Written chan struct{} `json:"-"`

	// Args are the arguments that ran, in canonical JSON. A Log writes them as configured; by default it does not.
	Args json.RawMessage `json:"args,omitempty"`
}

// ToolCall identifies a call of a tool.
type ToolCall struct {
	CallID         string `json:"callId,omitempty"`
	ParentCallID   string `json:"parentCallId,omitempty"`
	ProviderCallID string `json:"providerCallId,omitempty"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Executor is "client" if the client runs the tool. By text the record only means that it was asked.
	Executor string `json:"executor,omitempty"`
	// BusinessKey is the tool's own key, hashed because it is made of arguments.
	BusinessKey string `json:"businessKey,omitempty"`
}

// ToolNote is a running tool's addition to its audit record.
type ToolNote struct {
	Note     string          `json:"note,omitempty"`
	NoteData json.RawMessage `json:"noteData,omitempty"`
}

// Sentence describes an exact sentence, of EventExact. Its words are in Record.Args.
type Sentence struct {
	// Spoken is "exact", "by_model" (the model was asked to read it) or "unsaid".
	Spoken   string `json:"spoken,omitempty"`
	Words    string `json:"words,omitempty"`    // a hash of the words
	HeardMS  int64  `json:"heardMs,omitempty"`  // of the last attempt, by playback reports
	LengthMS int64  `json:"lengthMs,omitempty"` // of the audio
	Tries    int    `json:"tries,omitempty"`
}

// Statement is a record's part about the assistant's words: a claim, an exact sentence, or a stopped answer.
type Statement struct {
	Claim string `json:"claim,omitempty"` // of EventClaim: the kind of action, such as "book"
	Sentence
	Check string `json:"check,omitempty"` // of EventStopped
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
	KeyID  string    `json:"keyId,omitempty"`
}

// Calls returns how many calls of its budget the turn had used after this one, if known.
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

// At returns the time of a record.
func At(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Call completes the record of a finished tool call, by voice or by text. r has what the envelope lacks, with the
// BusinessKey itself and the tool as called, even if it does not exist; the caller of Call adds the session and its
// user. tools are those of the agent; may be nil.
func Call(at time.Time, r Record, tools *registry.Snapshot, env registry.Envelope) Record {
	r.Event, r.Time, r.BusinessKey = EventTool, At(at), hashed(r.BusinessKey)
	r.DurationMS, r.OK, r.CacheHit, r.OriginalTurn = env.Meta.DurationMS, env.OK, env.Meta.CacheHit, env.Meta.OriginalTurn
	r.Clamped, r.Evidence, r.Delivered = env.Meta.Clamped, env.Evidence, r.NotDelivered == ""
	if tools != nil {
		r.RegistryVersion = tools.Version()
		if t, ok := tools.Tool(r.ToolID); ok {
			r.ToolVersion, r.ToolVariant, r.Category = t.Version, t.Variant(), t.Category
			if t.ByClient() {
				r.Executor = executorClient
			}
		}
	}
	if e := env.Error; e != nil {
		r.ErrorType, r.PartialSideEffects = e.Type, e.PartialSideEffects
		if e.Type == registry.ErrorConfirmationRequired {
			r.Confirmation = "required"
		}
	}
	if r.ConfirmedBy != "" {
		r.Confirmation = "approved"
	}
	return r
}

const executorClient = "client"

// Spent returns a record of usage; why is the reason for the end of a session.
func Spent(at time.Time, event Event, mode spec.Mode, sum cost.Sum, prices, why string) Record {
	return Record{Event: event, Time: At(at), Mode: mode, DurationMS: sum.VoiceMS, OK: true,
		Usage: Usage{Spent: &sum, Prices: prices}, Why: why}
}

// Stopped returns the record of an answer that a check has stopped, without its words.
func Stopped(at time.Time, mode spec.Mode, turn int, check, why string) Record {
	return Record{Event: EventStopped, Time: At(at), Mode: mode, TurnID: turn,
		Statement: Statement{Check: check}, Why: why}
}

// Claimed returns the record of a statement of the assistant that no call explains.
func Claimed(at time.Time, mode spec.Mode, turn int, kind, why string) Record {
	return Record{Event: EventClaim, Time: At(at), Mode: mode, TurnID: turn,
		Statement: Statement{Claim: kind}, Why: why}
}

// Said returns the record of an exact sentence; call asked for it, if any. heard means to its end.
func Said(at time.Time, mode spec.Mode, turn int, s Sentence, call, text string, heard bool, why string) Record {
	s.Words = hashed(text)
	args, _ := json.Marshal(map[string]string{"text": text}) // only a string: it cannot fail
	return Record{Event: EventExact, Time: At(at), Mode: mode, TurnID: turn, OK: heard,
		Statement: Statement{Sentence: s},
		ToolCall:  ToolCall{CallID: call}, Args: args, Why: why}
}

// hashed returns an id of a business key or a sentence that does not reveal it.
func hashed(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// IntentTypes returns the types of intents.
func IntentTypes(intents []registry.Intent) []registry.IntentType {
	var types []registry.IntentType
	for _, i := range intents {
		types = append(types, i.Type)
	}
	return types
}
