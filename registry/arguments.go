package registry

import (
	"bytes"
	"encoding/json"
)

// Arguments are what a model wrote as the arguments of a call, decoded once. Whatever it
// wrote makes Arguments: PrepareDecoded says what is wrong with them. A value may be
// prepared once, because preparing fills in defaults.
type Arguments struct {
	raw      json.RawMessage
	value    any
	problems []Problem
	text     string
}

// Decode decodes a call's arguments strictly; empty ones are {}.
func Decode(raw json.RawMessage) Arguments {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	a := Arguments{raw: raw}
	a.value, a.problems, _ = decodeStrict(raw, MaxArgsBytes, MaxArgsDepth)
	if len(a.problems) == 0 {
		a.text = string(appendCanonical(make([]byte, 0, len(raw)), a.value))
	} else {
		a.text = string(bytes.TrimSpace(raw))
	}
	return a
}

// Text is the canonical form, in which equal arguments are equal text: RFC 8785, but with
// exact numbers, and keys sorted by their bytes. Arguments that cannot be decoded stand for
// themselves.
func (a Arguments) Text() string { return a.text }

// Value is the argument of that name: a string, a bool, a json.Number, nil, a []any or a
// map[string]any. It is nil where there is none. The caller must not change it.
func (a Arguments) Value(name string) any {
	object, _ := a.value.(map[string]any)
	return object[name]
}
