package audit

import (
	"encoding/json"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// Note is a tool's note about its running call (registry.Audit). The caller of Record adds the session and its user.
type Note struct {
	At              time.Time
	Tool            *registry.Tool
	RegistryVersion string
	Mode            spec.Mode
	Turn            int
	// ID, Key and Reference describe the call; see Call.
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
