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

const rootMend = "describe the properties one by one; what binds them together is for the handler to check and for the description to say"

// OpenAIParameters returns the parameter schema of both OpenAI forms: an equivalent JSON Schema with references
// inlined and allOf merged where possible. Keywords have the order of [Keywords], properties that of the schema's
// text. The error is [Problems].
func OpenAIParameters(text json.RawMessage) (json.RawMessage, error) {
	var p problems
	o := canonical(text, &p)
	if o == nil || o.unknown {
		return nil, p.list.asError()
	}
	for _, key := range rootRefused {
		if o.has(key) {
			p.add(o.at(key), key, "OpenAI does not take %s at the root of the parameters%s. Instead: %s.", key, residue(o, key), rootMend)
		}
	}
	if err := p.list.asError(); err != nil {
		return nil, err
	}
	return document.Marshal(printSchema(o))
}

func residue(o *object, key string) string {
	if key != "allOf" {
		return ""
	}
	for _, part := range o.list(key) {
		if s, ok := part.(*object); ok && len(s.members) > 0 {
			return " (its " + s.members[0].key + " does not merge with another)"
		}
	}
	return ""
}

func printSchema(o *object) *object {
	out := &object{path: o.path, members: make([]member, 0, len(o.members))}
	for _, k := range table {
		i := o.find(k.name)
		if i < 0 {
			continue
		}
		m := o.members[i]
		switch k.holds {
		case holdsSchema:
			m.value = printAny(m.value)
		case holdsList:
			list, _ := m.value.([]any)
			made := make([]any, len(list))
			for i, s := range list {
				made[i] = printAny(s)
			}
			m.value = made
		case holdsMap:
			named := o.sub(k.name)
			made := &object{path: named.path}
			for _, s := range named.members {
				made.members = append(made.members, member{key: s.key, value: printAny(s.value)})
			}
			m.value = made
		case holdsNone:
		}
		out.members = append(out.members, m)
	}
	return out
}

func printAny(schema any) any {
	if o, ok := schema.(*object); ok {
		return printSchema(o)
	}
	return schema
}
