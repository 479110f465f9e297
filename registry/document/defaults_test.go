package document

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDefaults(t *testing.T) {
	const closed = `,"additionalProperties":false}`
	tests := []struct{ name, schema, args, want, applied string }{
		{"top", `{"type":"object","properties":{"a":{"type":"integer","default":1},"b":{"type":"integer"}}` + closed, `{}`, `{"a":1}`, "/a"},
		{"there already", `{"type":"object","properties":{"a":{"type":["integer","null"],"default":1}}` + closed, `{"a":null}`, `{"a":null}`, ""},
		{"null as a default", `{"type":"object","properties":{"a":{"type":["integer","null"],"default":null}}` + closed, `{}`, `{"a":null}`, "/a"},
		{"false and zero as defaults", `{"type":"object","properties":{"a":{"type":"boolean","default":false},"b":{"type":"integer","default":0}}` + closed, `{}`, `{"a":false,"b":0}`, "/a /b"},
		{"in an object that is there", `{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"type":"integer","default":1}}` + closed + `}` + closed, `{"o":{}}`, `{"o":{"a":1}}`, "/o/a"},
		{"not in an object that is absent", `{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"type":"integer","default":1}}` + closed + `}` + closed, `{}`, `{}`, ""},
		{"in a default object", `{"type":"object","properties":{"o":{"type":"object","default":{},"properties":{"a":{"type":"integer","default":1}}` + closed + `}` + closed, `{}`, `{"o":{"a":1}}`, "/o /o/a"},
		{"in items", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","default":1}}` + closed + `}}` + closed, `{"l":[{},{"a":2},{}]}`, `{"l":[{"a":1},{"a":2},{"a":1}]}`, "/l/0/a /l/2/a"},
		{"in items of items", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","default":1}}` + closed + `}}}` + closed, `{"l":[[{}]]}`, `{"l":[[{"a":1}]]}`, "/l/0/0/a"},
		{"by $ref", `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"o":{"$ref":"#/$defs/o"}},"additionalProperties":false,"$defs":{"n":{"type":"integer","default":7},"o":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}}` + closed + `}}`, `{"o":{}}`, `{"a":7,"o":{"a":7}}`, "/a /o/a"},
		{"nearer than by $ref", `{"type":"object","properties":{"a":{"$ref":"#/$defs/n","default":8}},"additionalProperties":false,"$defs":{"n":{"type":"integer","default":7}}}`, `{}`, `{"a":8}`, "/a"},
		{"by allOf", `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false,"allOf":[{"properties":{"a":{"default":4}}}]}`, `{}`, `{"a":4}`, "/a"},
		{"in the chosen branch only", `{"type":"object","properties":{"o":{"oneOf":[
			{"type":"object","properties":{"kind":{"const":"x"},"a":{"type":"integer","default":1}},"required":["kind"],"additionalProperties":false},
			{"type":"object","properties":{"kind":{"const":"y"},"b":{"type":"integer","default":2}},"required":["kind"],"additionalProperties":false}]}}` + closed, `{"o":{"kind":"y"}}`, `{"o":{"b":2,"kind":"y"}}`, "/o/b"},
		{"in no branch", `{"type":"object","properties":{"o":{"anyOf":[
			{"type":"object","properties":{"kind":{"const":"x"},"a":{"type":"integer","default":1}},"required":["kind"],"additionalProperties":false},{"type":"string"}]}}` + closed, `{"o":{}}`, `{"o":{}}`, ""},
		{"required is filled in too", `{"type":"object","properties":{"a":{"type":"integer","default":1}},"required":["a"]` + closed, `{}`, `{"a":1}`, "/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			params, problems := CompileParameters(json.RawMessage(tt.schema))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			for range 2 { // twice with the same schema: a default is a copy
				v, _, _ := Decode([]byte(tt.args), MaxArgsBytes, MaxArgsDepth)
				f := filler{}
				f.fill(params.Root, v, nil)
				var applied []string
				for _, p := range f.applied {
					applied = append(applied, p.String())
				}
				if got := string(AppendCanonical(nil, v)); got != tt.want || strings.Join(applied, " ") != tt.applied {
					t.Errorf("got %s with %q applied, want %s with %q", got, applied, tt.want, tt.applied)
				}
				scribble(v)
			}
		})
	}
}

// scribble changes everything in a value, as a caller might.
func scribble(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			scribble(item)
			v[key] = "scribbled"
		}
	case []any:
		for i, item := range v {
			scribble(item)
			v[i] = "scribbled"
		}
	}
}
