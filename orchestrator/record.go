package orchestrator

import (
	"voicegw/audit"
	"voicegw/registry"
)

// record is the audit's record of a call and its answer.
func (m *machine) record(c call, env registry.Envelope, applied, refused []registry.Intent, why string, delivered bool) audit.Record {
	r := audit.Call{
		At: m.at, Tools: m.book.Tools(), Tool: c.tool, Mode: registry.ModeVoice, Turn: c.turn, ID: c.id, ProviderID: c.provider,
		Key: c.keys.Idempotency, Business: c.keys.Business, Budget: c.budget, Envelope: env,
		Applied: applied, Refused: refused, Why: why,
	}
	if c.prepared != nil {
		r.Tool, r.Args = c.prepared.Tool().ToolID, c.prepared.Args()
	}
	if a := c.confirmed; a != nil {
		r.ConfirmedBy, r.Reference = string(a.by), a.reference
	}
	if !delivered {
		r.NotDelivered = m.notDelivered(c)
	}
	return r.Record()
}

// sessionOver is why nobody is told any more.
const sessionOver = "session_over"

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
		return sessionOver
	}
}
