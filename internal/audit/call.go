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

// Call describes a finished tool call, by voice or by text. The caller of Record adds the session and its user.
type Call struct {
	At time.Time
	// Agent and AgentVersion are empty if the caller of Record adds them.
	Agent, AgentVersion string
	Tools               *registry.Snapshot // of the agent; may be nil
	Tool                string             // as called, even if it does not exist
	Mode                spec.Mode
	Turn                int
	ID, ProviderID      string
	Parent              string
	Key, Business       string
	Args                json.RawMessage // that ran, in canonical JSON; nil if nothing was prepared
	Budget              json.RawMessage
	Envelope            registry.Envelope
	// Why is the reason of the last of the Refused intents.
	Applied, Refused       []registry.Intent
	Why                    string
	NotDelivered           string
	ConfirmedBy, Reference string
	Waited                 time.Duration
	Queued                 time.Duration
}

// Record returns the call's record.
func (c Call) Record() Record {
	env := c.Envelope
	r := Record{
		Event: EventTool, Time: c.At.UTC().Truncate(time.Millisecond), ToolID: c.Tool, Mode: c.Mode,
		Agent: c.Agent, AgentVersion: c.AgentVersion,
		TurnID: c.Turn, ToolCall: ToolCall{CallID: c.ID, ParentCallID: c.Parent, ProviderCallID: c.ProviderID,
			IdempotencyKey: c.Key, BusinessKey: hashed(c.Business)},
		DurationMS: env.Meta.DurationMS, OK: env.OK, Budget: c.Budget,
		Clamped: env.Meta.Clamped, CacheHit: env.Meta.CacheHit, OriginalTurn: env.Meta.OriginalTurn,
		Intents: intentTypes(c.Applied), Refused: intentTypes(c.Refused), Why: c.Why,
		Delivered: c.NotDelivered == "", NotDelivered: c.NotDelivered, Args: c.Args,
		Evidence: env.Evidence, Queued: c.Queued, Approval: Approval{Waited: c.Waited},
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

const executorClient = "client"

// Spent returns a record of usage; why is the reason for the end of a session.
func Spent(at time.Time, event Event, mode spec.Mode, sum cost.Sum, prices, why string) Record {
	return Record{Event: event, Time: at.UTC().Truncate(time.Millisecond), Mode: mode, DurationMS: sum.VoiceMS, OK: true,
		Usage: Usage{Spent: &sum, Prices: prices}, Why: why}
}

// Claimed returns the record of a statement of the assistant that no call explains.
func Claimed(at time.Time, mode spec.Mode, turn int, kind, why string) Record {
	return Record{Event: EventClaim, Time: at.UTC().Truncate(time.Millisecond), Mode: mode, TurnID: turn, Claim: kind, Why: why}
}

// hashed returns an id of a business key that does not reveal the arguments in it.
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

// Note is a tool's note about its running call (registry.Audit). The caller of Record adds the session and its user.
type Note struct {
	At                 time.Time
	Tool               *registry.Tool
	RegistryVersion    string
	Mode               spec.Mode
	Turn               int
	ID, Key, Reference string
	Event              string
	Data               json.RawMessage
}

// Record returns the note's record.
func (n Note) Record() Record {
	return Record{
		Event: EventNote, Time: n.At.UTC().Truncate(time.Millisecond), Mode: n.Mode, OK: true,
		ToolID: n.Tool.ToolID, ToolVersion: n.Tool.Version, ToolVariant: n.Tool.Variant(), Category: n.Tool.Category,
		RegistryVersion: n.RegistryVersion,
		TurnID:          n.Turn, ToolCall: ToolCall{CallID: n.ID, IdempotencyKey: n.Key},
		Approval: Approval{Reference: n.Reference}, Note: n.Event, NoteData: n.Data,
	}
}
