package registry

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"
	"slices"
	"sync"

	"voicegw/registry/document"
)

//go:embed envelope.schema.json
var envelopeText []byte

var compactEnvelope = sync.OnceValue(func() json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, envelopeText); err != nil {
		panic("registry: envelope.schema.json: " + err.Error()) // every test of an envelope compiles it
	}
	return b.Bytes()
})

// EnvelopeSchema returns the JSON Schema of all tools' [Envelope]s. The caller owns it.
func EnvelopeSchema() json.RawMessage { return slices.Clone(compactEnvelope()) }

// sameJSON reports whether a decoded value equals that of a text.
func sameJSON(v any, text json.RawMessage) bool {
	other, _, ok := document.Decode(text, MaxFileBytes, maxFileDepth)
	return ok && bytes.Equal(document.AppendCanonical(nil, v), document.AppendCanonical(nil, other))
}
