package registry

import (
	"bytes"
	"encoding/json"

	"voicegw/registry/document"
)

// Arguments are a call's arguments as the model wrote them, decoded once. Decode accepts any input; PrepareDecoded
// reports the problems. A value may be prepared only once, because preparing fills in defaults.
type Arguments struct {
	raw      json.RawMessage
	value    any
	problems []document.Problem
	text     string
}

// Decode decodes arguments strictly; empty input means {}.
func Decode(raw json.RawMessage) Arguments {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	a := Arguments{raw: raw}
	a.value, a.problems, _ = document.Decode(raw, document.MaxArgsBytes, document.MaxArgsDepth)
	if len(a.problems) == 0 {
		a.text = string(document.AppendCanonical(make([]byte, 0, len(raw)), a.value))
	} else {
		a.text = string(bytes.TrimSpace(raw))
	}
	return a
}

// Text returns the canonical form, which is equal for equal arguments: RFC 8785, but with exact numbers and keys
// sorted by bytes. Invalid arguments are returned unchanged.
func (a Arguments) Text() string { return a.text }

// Object returns arguments for a conversation's history, which providers check: a valid JSON object as it was
// written, otherwise {}, because the call's error explains the problem. Lone surrogates are replaced.
func (a Arguments) Object() json.RawMessage {
	if _, ok := a.value.(map[string]any); !ok || len(a.problems) > 0 {
		return json.RawMessage("{}")
	}
	if lower := bytes.ToLower(a.raw); bytes.Contains(lower, []byte(`\ud`)) {
		return json.RawMessage(a.text)
	}
	return a.raw
}

// Value returns an argument: a string, bool, json.Number, nil, []any or map[string]any; nil if missing. The caller
// must not change it.
func (a Arguments) Value(name string) any {
	object, _ := a.value.(map[string]any)
	return object[name]
}
