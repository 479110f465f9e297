package registry

import (
	"encoding/json"
	"fmt"
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
		return Part{}, fmt.Errorf("registry: %w: this call has given %d parts, and more are not allowed", ErrNotTaken, MaxParts)
	case bytes+len(encoded) > MaxStream:
		return Part{}, fmt.Errorf("registry: %w: the parts of this call have more than %d bytes of JSON", ErrNotTaken, MaxStream)
	}
	return Part{Part: parts + 1, Data: encoded}, nil
}
