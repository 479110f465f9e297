package registry

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry/document"
)

// TestFit: a server's schema becomes one that every provider has a form for, losses are reported, and arguments are
// converted back to the server's form.
func TestFit(t *testing.T) {
	for name, tc := range map[string]struct {
		schema, want string
		losses       []string
		args, sent   string // sent: the arguments for the server, or a problem
	}{
		"plain": {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
			`{"additionalProperties":false,"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`, nil, `{"a":"x"}`, `{"a":"x"}`},
		"none": {`{"type":"object"}`, `{"additionalProperties":false,"properties":{},"type":"object"}`, nil, `{}`, `{}`},
		"an older draft": {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"x":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/x"}}}`,
			`{"$defs":{"x":{"type":"integer"}},"additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/x"}},"type":"object"}`, nil, `{"a":1}`, `{"a":1}`},
		"an unknown keyword": {`{"type":"object","properties":{"a":{"type":"string","format":"uri-template","x":1,"pattern":"^(?!b)"}}}`,
			`{"additionalProperties":false,"properties":{"a":{"type":"string"}},"type":"object"}`,
			[]string{`/properties/a: "format" is left out.`, `/properties/a: "pattern" is left out.`, `/properties/a: "x" is left out.`}, `{"a":"c"}`, `{"a":"c"}`},
		"an open object": {`{"type":"object","properties":{"a":{"type":"object","description":"Fields."}}}`,
			`{"additionalProperties":false,"properties":{"a":{"description":"Fields. Write it as JSON.","type":"string"}},"type":"object"}`,
			[]string{"a is written as JSON text."}, `{"a":"{\"b\":[1]}"}`, `{"a":{"b":[1]}}`},
		"any value": {`{"type":"object","properties":{"a":{}}}`,
			`{"additionalProperties":false,"properties":{"a":{"description":"Write it as JSON.","type":"string"}},"type":"object"}`,
			[]string{"a is written as JSON text."}, `{"a":"nope"}`, "/a: It must be JSON."},
		"a nested object": {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"number"}}}}}}`,
			`{"additionalProperties":false,"properties":{"a":{"items":{"additionalProperties":false,"properties":{"b":{"type":"number"}},"type":"object"},"type":"array"}},"type":"object"}`,
			nil, `{"a":[{"b":1}]}`, `{"a":[{"b":1}]}`},
		"alternatives at the root": {`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`,
			`{"additionalProperties":false,"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}`,
			[]string{`The schema says in "anyOf" which arguments belong together; the server checks that.`}, `{}`, "fits none of the allowed forms: /a is required and missing; or /b is required and missing"},
		"recursion": {`{"type":"object","properties":{"t":{"$ref":"#/$defs/n"},"b":{"type":"boolean"}},"$defs":{"n":{"type":"object","properties":{"c":{"$ref":"#/$defs/n"}}}}}`,
			`{"additionalProperties":false,"properties":{"b":{"type":"boolean"},"t":{"description":"Write it as JSON.","type":"string"}},"type":"object"}`,
			[]string{"t is written as JSON text."}, `{"t":"{\"c\":{}}"}`, `{"t":{"c":{}}}`},
		"invisible text": {`{"type":"object","properties":{"a":{"type":"string","description":"x\u200by"}}}`,
			`{"additionalProperties":false,"properties":{"a":{"description":"xy","type":"string"}},"type":"object"}`, nil, `{}`, `{}`},
		"names": {`{"type":"object","properties":{"user-id":{"type":"string"},"user_id":{"type":"number"},"$f":{},"":{"type":"boolean"}},"required":["user-id"]}`,
			`{"additionalProperties":false,"properties":{"_f":{"description":"Write it as JSON.","type":"string"},"a_":{"type":"boolean"},"user_id":{"type":"number"},"user_id_2":{"type":"string"}},"required":["user_id_2"],"type":"object"}`,
			[]string{" is called a_.", "$f is called _f.", "_f is written as JSON text.", "user-id is called user_id_2."}, `{"user_id_2":"x","user_id":1,"_f":"[1]","a_":true}`, `{"":true,"$f":[1],"user-id":"x","user_id":1}`},
		"not an object": {`{"type":"string"}`, "error: its root must be an object", nil, "", ""},
		"not JSON":      {`{"type":"object"`, "error: ", nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, parameters, losses, err := Fit(json.RawMessage(tc.schema))
			if err != nil {
				if want, is := strings.CutPrefix(tc.want, "error: "); !is || !strings.Contains(err.Error(), want) {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, string(parameters)); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(losses, tc.losses) {
				t.Errorf("losses %q, want %q", losses, tc.losses)
			}
			args, problems := a.Decode(json.RawMessage(tc.args))
			got := string(document.AppendCanonical(nil, any(args)))
			if len(problems) > 0 {
				got = problems[0].String()
			}
			if got != tc.sent && !strings.HasSuffix(got, tc.sent) {
				t.Errorf("the server gets %s, want %s", got, tc.sent)
			}
		})
	}
}
