package registry

import (
	"testing"

	"voicegw/internal/testutil"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(testutil.KBSearchSchema))
	for _, parameters := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"string","default":"x"},{"const":null}],"default":{}}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"(?=x)"}},"unevaluatedProperties":false,"$id":"http://example.org"}`,
		`{"type":"object","patternProperties":{"(":true},"allOf":[false],"if":{"not":{}},"dependentSchemas":{"a":{"contains":true}}}`,
	} {
		f.Add([]byte(`{"toolId":"x","parameters":` + parameters + `}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, problems := spec.Parse(data)
		for _, p := range problems {
			if _, ok := document.ParsePointer(p.Path); !ok || p.Message == "" {
				t.Errorf("a problem without a message or place: %+v", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		// An accepted spec is accepted again from the registry file, with the same content.
		e := Entry{Spec: parsed, Summary: "s", Guide: "g", Forms: Forms{[]byte(`{}`), []byte(`{}`), []byte(`{}`)}}
		data, err := File{Tools: []Entry{e}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, again := spec.Parse(mustMarshal(t, parsed)); len(again) > 0 {
			t.Fatalf("%s was accepted, then refused: %v", data, again)
		}
	})
}
