package adapter

import (
	"encoding/json"

	"voicegw/registry/document"
)

// rootRefused are keywords that OpenAI's servers refuse at the root of parameters: "schema
// must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at
// the top level" (error of the chat API, seen in public issue reports of 2025 and 2026).
// Gemini's servers accept only an OBJECT there, so the first two apply to it as well.
var rootRefused = []string{"anyOf", "oneOf", "allOf", "enum"}

const rootAdvice = "describe each property alone, explain their combinations in the description, and check them in the handler"

// OpenAIParameters returns the parameter schema of both OpenAI forms: an equivalent JSON Schema with references
// inlined and allOf merged where possible. Keywords have the order of [document.Keywords], properties that of the schema's
// text. The error is [Problems].
func OpenAIParameters(text json.RawMessage) (json.RawMessage, error) {
	var p Problems
	o := canonical(text, &p)
	if o == nil {
		return nil, p.asError()
	}
	for _, key := range rootRefused {
		if o.has(key) {
			p.add(o.at(key), key, "OpenAI does not accept %s at the root of the parameters%s; %s", key, residue(o, key), rootAdvice)
		}
	}
	if err := p.asError(); err != nil {
		return nil, err
	}
	return document.Marshal(ordered(o))
}

func residue(o *object, key string) string {
	if key != "allOf" {
		return ""
	}
	for _, part := range o.list(key) {
		if s, ok := part.(*object); ok && len(s.members) > 0 {
			return " (its " + s.members[0].key + " cannot be merged)"
		}
	}
	return ""
}

// ordered returns a schema with its keywords in the order of [document.Keywords].
func ordered(schema any) any {
	o, ok := schema.(*object)
	if !ok {
		return schema
	}
	out := &object{path: o.path, members: make([]member, 0, len(o.members))}
	for _, k := range document.Keywords {
		if i := o.find(k.Name); i >= 0 {
			m := o.members[i]
			m.value = subschemas(m.value, k.Holds, ordered)
			out.members = append(out.members, m)
		}
	}
	return out
}
