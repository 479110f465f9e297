package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"voicegw/audit"
	"voicegw/registry"
)

// toolRecord begins a record of a tool. The session adds who it is.
func (m *machine) toolRecord(tool string) audit.Record {
	r := audit.Record{
		Event: audit.EventTool, Time: m.at.UTC().Truncate(time.Millisecond), ToolID: tool, Mode: registry.ModeVoice,
	}
	if tools := m.book.Tools(); tools != nil {
		r.RegistryVersion = tools.Version()
		if t, ok := tools.Tool(tool); ok {
			r.ToolVersion, r.Category = t.Version, t.Category
		}
	}
	return r
}

// record is the audit's record of a call and its answer.
func (m *machine) record(c call, env registry.Envelope, applied, refused []registry.Intent, why string, delivered bool) audit.Record {
	tool := c.tool
	if c.prepared != nil {
		tool = c.prepared.Tool().ToolID
	}
	r := m.toolRecord(tool)
	r.TurnID, r.CallID, r.ProviderCallID = c.turn, c.id, c.provider
	r.IdempotencyKey, r.BusinessKey = c.keys.Idempotency, hashed(c.keys.Business)
	r.DurationMS, r.OK, r.Budget = env.Meta.DurationMS, env.OK, c.budget
	r.Clamped, r.CacheHit, r.OriginalTurn = env.Meta.Clamped, env.Meta.CacheHit, env.Meta.OriginalTurn
	if e := env.Error; e != nil {
		r.ErrorType, r.PartialSideEffects = e.Type, e.PartialSideEffects
		if e.Type == registry.ErrorConfirmationRequired {
			r.Confirmation = "required"
		}
	}
	if a := c.confirmed; a != nil {
		r.Confirmation, r.ConfirmedBy, r.Reference = string(OutcomeApproved), string(a.by), a.reference
	}
	r.Intents, r.Refused, r.Why = intentTypes(applied), intentTypes(refused), why
	if r.Delivered = delivered; !delivered {
		r.NotDelivered = m.notDelivered(c)
	}
	if c.prepared != nil {
		r.Args = c.prepared.Args()
	}
	return r
}

// notDelivered says why the model was not given an answer.
func (m *machine) notDelivered(c call) string {
	switch {
	case c.repeated:
		return "repeated"
	case c.cancelled:
		return "cancelled"
	case c.superseded:
		return "superseded"
	default:
		return "session_over"
	}
}

// hashed names a business key without telling what it is made of.
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
