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

// Call is everything that the record of a tool call is made from, by voice and by text. The
// session and its user are added to the Record.
type Call struct {
	At time.Time
	// Agent is in whose name the call was made, AgentVersion the version of its document; empty if that is
	// for the conversation to say.
	Agent, AgentVersion string
	// Tools are the tools of that agent; nil if it has none.
	Tools *registry.Snapshot
	// Tool is what ran, or was asked for.
	Tool           string
	Mode           spec.Mode
	Turn           int
	ID, ProviderID string
	// Parent is the call whose tool has made this one; empty for one of the model.
	Parent        string
	Key, Business string
	// Args are the arguments that ran, in canonical JSON; nil if nothing was prepared.
	Args     json.RawMessage
	Budget   json.RawMessage
	Envelope registry.Envelope
	// Applied and Refused are its intents; Why is the reason of the last refusal.
	Applied, Refused []registry.Intent
	Why              string
	// NotDelivered says why the model was not given the answer; empty if it was.
	NotDelivered string
	// ConfirmedBy and Reference are those of an approval.
	ConfirmedBy, Reference string
	// Queued and Waited are those of the Record.
	Queued, Waited time.Duration
}

// Record returns the line of the call.
func (c Call) Record() Record {
	env := c.Envelope
	r := Record{
		Event: EventTool, Time: c.At.UTC().Truncate(time.Millisecond), ToolID: c.Tool, Mode: c.Mode,
		Agent: c.Agent, AgentVersion: c.AgentVersion,
		TurnID: c.Turn, CallID: c.ID, ParentCallID: c.Parent, ProviderCallID: c.ProviderID,
		IdempotencyKey: c.Key, BusinessKey: hashed(c.Business),
		DurationMS: env.Meta.DurationMS, OK: env.OK, Budget: c.Budget,
		Clamped: env.Meta.Clamped, CacheHit: env.Meta.CacheHit, OriginalTurn: env.Meta.OriginalTurn,
		Intents: intentTypes(c.Applied), Refused: intentTypes(c.Refused), Why: c.Why,
		Delivered: c.NotDelivered == "", NotDelivered: c.NotDelivered, Args: c.Args,
		Evidence: env.Evidence, Queued: c.Queued, Waited: c.Waited,
	}
	if c.Tools != nil {
		r.RegistryVersion = c.Tools.Version()
		if t, ok := c.Tools.Tool(c.Tool); ok {
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
	if c.ConfirmedBy != "" {
		r.Confirmation, r.ConfirmedBy, r.Reference = "approved", c.ConfirmedBy, c.Reference
	}
	return r
}

// executorClient is the Executor of tools that the client runs.
const executorClient = "client"

// Spent returns the record of what was used; why is the reason why a session ended.
func Spent(at time.Time, event Event, mode spec.Mode, sum cost.Sum, prices, why string) Record {
	return Record{Event: event, Time: at.UTC().Truncate(time.Millisecond), Mode: mode, DurationMS: sum.VoiceMS, OK: true,
		Spent: &sum, Prices: prices, Why: why}
}

// hashed names a business key without revealing the arguments that it is made of.
func hashed(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

func intentTypes(intents []registry.Intent) []registry.IntentType {
	var types []registry.IntentType
	for _, i := range intents {
		types = append(types, i.Type)
	}
	return types
}
