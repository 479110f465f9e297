package registry

import (
	"bytes"
	"encoding/json"

	"voicegw/registry/document"
)

// Arguments are the arguments of a call as the model wrote them, decoded once. Any input
// gives Arguments: PrepareDecoded reports what is wrong with them. A value may be prepared
// only once, because preparing fills in defaults.
type Arguments struct {
	raw      json.RawMessage
	value    any
	problems []document.Problem
	text     string
}

// Decode decodes a call's arguments strictly; empty input means {}.
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

// Text returns the canonical form, in which equal arguments are equal text: RFC 8785, but
// with exact numbers, and with keys sorted by their bytes. Arguments that cannot be decoded
// are returned unchanged.
func (a Arguments) Text() string { return a.text }

// Object returns the arguments for the history of a conversation, which providers check: as they were
// written if that is a JSON object without problems, and {} otherwise. The call's error tells the model
// what was wrong. Escapes that stand for no character (a lone surrogate) are replaced.
func (a Arguments) Object() json.RawMessage {
	if _, ok := a.value.(map[string]any); !ok || len(a.problems) > 0 {
		return json.RawMessage("{}")
	}
	if lower := bytes.ToLower(a.raw); bytes.Contains(lower, []byte(`\ud`)) {
		return json.RawMessage(a.text)
	}
	return a.raw
}

// Value returns the argument called name: a string, a bool, a json.Number, nil, a []any or a
// map[string]any. It is nil if the argument is missing. The caller must not change it.
func (a Arguments) Value(name string) any {
	object, _ := a.value.(map[string]any)
	return object[name]
}
