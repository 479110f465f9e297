package audit

import (
	"encoding/json"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// Note is what a tool says of its call while it runs (registry.Audit). The session and its user are
// added to the Record.
type Note struct {
	At              time.Time
	Tool            *registry.Tool
	RegistryVersion string
	Mode            spec.Mode
	Turn            int
	// ID, Key and Reference are those of the call; see Call.
	ID, Key, Reference string
	Event              string
	Data               json.RawMessage
}

// Record returns the line of the note.
func (n Note) Record() Record {
	return Record{
		Event: EventNote, Time: n.At.UTC().Truncate(time.Millisecond), Mode: n.Mode, OK: true,
		ToolID: n.Tool.ToolID, ToolVersion: n.Tool.Version, ToolVariant: n.Tool.Variant(), Category: n.Tool.Category,
		RegistryVersion: n.RegistryVersion,
		TurnID:          n.Turn, CallID: n.ID, IdempotencyKey: n.Key, Reference: n.Reference, Note: n.Event, NoteData: n.Data,
	}
}
