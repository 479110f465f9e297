package document

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExplain checks the model's text for each kind of error.
func TestExplain(t *testing.T) {
	object := func(props string, more ...string) string {
		return `{"type":"object","properties":{` + props + `},"additionalProperties":false` + strings.Join(more, "") + `}`
	}
	tests := []struct {
		name, schema, args string
		want               []string
	}{
		{"type", object(`"n":{"type":"integer"}`), `{"n":"5"}`, []string{`/n: must be an integer, got the string "5"`}},
		{"type of a fraction", object(`"n":{"type":"integer"}`), `{"n":5.5}`, []string{`/n: must be an integer, got the number 5.5`}},
		{"several types", object(`"n":{"type":["string","null"]}`), `{"n":[]}`, []string{`/n: must be a string or null, got an array`}},
		{"enum", object(`"n":{"enum":["a","b"]}`), `{"n":"c"}`, []string{`/n: must be one of "a", "b", got "c"`}},
		{"const", object(`"n":{"const":true}`), `{"n":false}`, []string{`/n: must be true, got false`}},
		{"bounds", object(`"a":{"type":"integer","minimum":1},"b":{"type":"number","maximum":2.5},"c":{"type":"number","exclusiveMinimum":0},"d":{"type":"number","exclusiveMaximum":1},"e":{"type":"integer","multipleOf":5}`),
			`{"a":0,"b":3,"c":0,"d":1,"e":7}`,
			[]string{`/a: must be at least 1, got 0`, `/b: must be at most 2.5, got 3`, `/c: must be more than 0, got 0`, `/d: must be less than 1, got 1`, `/e: must be a multiple of 5, got 7`}},
		{"exact bound", object(`"a":{"type":"integer","maximum":9007199254740992}`), `{"a":9007199254740993}`, []string{`/a: must be at most 9007199254740992, got 9007199254740993`}},
		{"lengths", object(`"a":{"type":"string","minLength":1},"b":{"type":"string","maxLength":3},"c":{"type":"string","minLength":2}`), `{"a":"","b":"äöüß","c":"x"}`,
			[]string{`/a: must not be empty, at least 1 characters`, `/b: must have at most 3 characters, has 4`, `/c: must have at least 2 characters, has 1`}},
		{"items", object(`"a":{"type":"array","items":{"type":"string"},"minItems":1},"b":{"type":"array","items":{"type":"integer"},"maxItems":1,"uniqueItems":true}`), `{"a":[],"b":[1,1]}`,
			[]string{`/a: must have at least 1 items, has 0`, `/b: must have at most 1 items, has 2`, `/b: must not have the same item twice: items at index 0 and 1 are equal`}},
		{"each item", object(`"a":{"type":"array","items":{"type":"integer"}}`), `{"a":[1,"x",3,null]}`,
			[]string{`/a/1: must be an integer, got the string "x"`, `/a/3: must be an integer, got null`}},
		{"pattern and format", object(`"a":{"type":"string","pattern":"^[a-z]+$"},"b":{"type":"string","format":"date"}`), `{"a":"X1","b":"tomorrow"}`,
			[]string{`/a: must match the regular expression "^[a-z]+$", got "X1"`, `/b: must be a date such as 2006-01-02, got "tomorrow"`}},
		{"required, each by its own path", object(`"q":{"type":"string","description":"The words."},"o":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}`, `,"required":["q","o"]`), `{"o":{}}`,
			[]string{`/o/x: is required and missing`, `/q: is required and missing: The words.`}},
		{"unknown, each by its own path", object(`"top_k":{"type":"integer"},"query":{"type":"string"}`), `{"topk":1,"zzz":2}`,
			[]string{`/topk: is not a known parameter; did you mean "top_k"?; known here: query, top_k`, `/zzz: is not a known parameter; known here: query, top_k`}},
		{"unknown where no parameter is declared", object(``), `{"a/b":1}`, []string{`/a~1b: is not a known parameter: this object takes no parameters, leave it out`}},
		{"names that must be escaped", object(`"a/b~c d%":{"type":"integer"}`), `{"a/b~c d%":true}`, []string{`/a~1b~0c d%: must be an integer, got the boolean true`}},
		{"names that are keywords", object(`"type":{"type":"integer"},"anyOf":{"type":"object","properties":{"minimum":{"type":"integer","minimum":2,"maximum":1}},"additionalProperties":false},"required":{"type":"string"}`),
			`{"type":"x","anyOf":{"minimum":1.5},"required":1}`,
			[]string{`/anyOf/minimum: must be an integer, got the number 1.5`, `/required: must be a string, got the number 1`, `/type: must be an integer, got the string "x"`}},
		{"through $ref and allOf", `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"allOf":[{"$ref":"#/$defs/n"},{"maximum":3}]}},"additionalProperties":false,"$defs":{"n":{"type":"integer","minimum":1}}}`,
			`{"a":0,"b":9}`, []string{`/a: must be at least 1, got 0`, `/b: must be at most 3, got 9`}},
		{"nearest choice", object(`"a":{"anyOf":[{"type":"string"},{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false}]}`), `{"a":{"id":"x"}}`,
			[]string{`/a/id: must be an integer, got the string "x"`}},
		{"no choice is near", object(`"a":{"oneOf":[{"type":"string"},{"type":"null"}]}`), `{"a":5}`,
			[]string{`/a: fits none of the allowed forms: must be a string, got the number 5; or must be null, got the number 5`}},
		{"too many choices fit", object(`"a":{"oneOf":[{"type":"integer"},{"type":"number"}]}`), `{"a":5}`,
			[]string{`/a: fits several of the allowed forms and must fit one alone: valid against schemas at indexes 0 and 1`}},
		{"dependent", object(`"a":{"type":"integer"},"minimum":{"type":"integer"}`, `,"dependentRequired":{"minimum":["a"]}`), `{"minimum":1}`,
			[]string{`/a: is required and missing, because "minimum" is there`}},
		{"false", object(`"a":false`), `{"a":3}`, []string{`/a: is not allowed here; leave it out`}},
		{"count of properties", object(`"a":{"type":"integer"}`, `,"minProperties":1`), `{}`, []string{`: must have at least 1 properties, has 0`}},
		{"long values", object(`"a":{"type":"integer"}`), `{"a":"` + strings.Repeat("x", 1000) + `"}`, []string{`/a: must be an integer, got the string "` + strings.Repeat("x", 60) + `…"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			params, problems := CompileParameters(json.RawMessage(tt.schema))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			v, _, _ := Decode([]byte(tt.args), MaxArgsBytes, MaxArgsDepth)
			err := params.schema.Validate(v)
			if err == nil {
				t.Fatal("the arguments are valid")
			}
			var got []string
			for _, p := range params.explain(err, v) {
				got = append(got, p.Path+": "+p.Message)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
