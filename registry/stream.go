package registry

import (
	"encoding/json"
	"fmt"
)

// Stream lets a tool hand out parts of its data while it works, for the client of a conversation in text to show. It is
// available to calls in text mode, and does nothing once the call is over. No model reads a part: the answer is the
// Result, as of any other call, and the only thing that is checked against the tool's output.
type Stream interface {
	// Part gives the client the next part (tool.message of the name PartName, with a [Part]), written as JSON. It
	// never waits. Nothing is sent if the error is not nil: it wraps ErrNotTaken if the data cannot be written or has
	// more than MaxAside bytes, or if the call has given MaxParts parts or MaxStream bytes.
	Part(data any) error
}

// PartName is the name of the messages that carry parts; [Messenger.Send] refuses it.
const PartName = "result.part"

// The limits of the parts of one call.
const (
	// MaxParts is how many parts one call may give.
	MaxParts = 64
	// MaxStream bounds the JSON of all of them, in bytes.
	MaxStream = 256 << 10
)

// Part is one part of a tool's data.
type Part struct {
	// Part counts from 1. A 1 begins anew: the call was made again, and what came before it does not count.
	Part int             `json:"part"`
	Data json.RawMessage `json:"data"`
}

// NewPart checks the next part of a call that has given that many parts and bytes before, by the rules of
// [Stream.Part].
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
