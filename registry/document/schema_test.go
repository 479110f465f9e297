package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestCompileParametersRefuses has a schema for each rule. A message of "" checks only the place.
func TestCompileParametersRefuses(t *testing.T) {
	in := func(a string) string {
		return `{"type":"object","properties":{"a":` + a + `},"additionalProperties":false}`
	}
	tests := []struct{ name, schema, path, message string }{
		{"true", `true`, "", "JSON Schema object"},
		{"not an object", `{"type":"string"}`, "/type", "must be an object"},
		{"object or null", `{"type":["object","null"],"additionalProperties":false}`, "/type", "must be an object"},
		{"open at the top", `{"type":"object","properties":{}}`, "", "additionalProperties"},
		{"open by true", `{"type":"object","properties":{},"additionalProperties":true}`, "/additionalProperties", "false"},
		{"open by a schema", `{"type":"object","properties":{},"additionalProperties":{"type":"string"}}`, "/additionalProperties", "false"},
		{"open below", in(`{"type":"object","properties":{}}`), "/properties/a", "additionalProperties"},
		{"open in items", in(`{"type":"array","items":{"type":"object"}}`), "/properties/a/items", "additionalProperties"},
		{"open by $ref", `{"type":"object","properties":{"a":{"$ref":"#/$defs/o"}},"additionalProperties":false,"$defs":{"o":{"type":"object"}}}`, "/properties/a", ""},
		{"open in one choice", in(`{"anyOf":[{"type":"string"},{"type":"object"}]}`), "/properties/a", ""},
		{"anything", in(`{}`), "/properties/a", "any value"},
		{"anything by true", in(`true`), "/properties/a", "any value"},
		{"items of any kind", in(`{"type":"array"}`), "/properties/a", "items"},
		{"items after the first", in(`{"type":"array","prefixItems":[{"type":"string"}]}`), "/properties/a", "items"},
		{"format", in(`{"type":"string","format":"hostname"}`), "/properties/a/format", "date-time"},
		{"format in a choice", in(`{"anyOf":[{"type":"string","format":"phone"},{"type":"null"}]}`), "/properties/a/anyOf/0/format", "not supported"},
		{"keyword misspelt", in(`{"type":"string","maxLenght":5}`), "/properties/a/maxLenght", `did you mean "maxLength"?`},
		{"keyword of OpenAPI", in(`{"type":"string","nullable":true}`), "/properties/a/nullable", `"null"`},
		{"a format at an integer", in(`{"type":"integer","format":"date"}`), "/properties/a/format", "has no effect"},
		{"a length at an integer", in(`{"type":["integer","null"],"minLength":1}`), "/properties/a/minLength", "has no effect"},
		{"dependentRequired of an unknown property", in(`{"type":"object","properties":{"b":{"type":"string"}},"dependentRequired":{"c":["b"]},"additionalProperties":false}`), "/properties/a/dependentRequired/c", "no property \"c\""},
		{"an enum with a value twice", in(`{"type":"number","enum":[1,2,1.0]}`), "/properties/a/enum/2", "twice"},
		{"a pattern in slashes", in(`{"type":"string","pattern":"/^a$/i"}`), "/properties/a/pattern", "between slashes"},
		{"an example that does not fit", in(`{"type":"string","maxLength":2,"examples":["a","abc"]}`), "/properties/a/examples/1", "does not fit"},
		{"definitions", `{"type":"object","additionalProperties":false,"definitions":{}}`, "/definitions", "$defs"},
		{"$id", `{"$id":"http://example.org/x","type":"object","additionalProperties":false}`, "/$id", "how $ref is resolved"},
		{"$id below", in(`{"$id":"file:///etc/","type":"string"}`), "/properties/a/$id", "how $ref is resolved"},
		{"$anchor", in(`{"$anchor":"x","type":"string"}`), "/properties/a/$anchor", "$defs"},
		{"$dynamicRef", in(`{"$dynamicRef":"#x"}`), "/properties/a/$dynamicRef", "$defs"},
		{"another draft", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false}`, "/$schema", "2020-12"},
		{"a draft from the net", `{"$schema":"http://example.org/schema","type":"object","additionalProperties":false}`, "/$schema", "2020-12"},
		{"$schema below", in(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string"}`), "/properties/a/$schema", "only at the top"},
		{"$ref to a file", in(`{"$ref":"file:///etc/hostname"}`), "/properties/a/$ref", "no other file is read"},
		{"$ref to the net", in(`{"$ref":"http://127.0.0.1:1/x.json"}`), "/properties/a/$ref", "no other file is read"},
		{"$ref to another file", in(`{"$ref":"other.json#/a"}`), "/properties/a/$ref", "no other file is read"},
		{"$ref to the meta-schema", in(`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`), "/properties/a/$ref", "no other file is read"},
		{"$ref to nothing", in(`{"$ref":"#/$defs/gone"}`), "/properties/a/$ref", "not refer to a schema of this file"},
		{"$ref to an anchor", in(`{"$ref":"#gone"}`), "/properties/a/$ref", "not refer to a schema of this file"},
		{"$ref to a non-schema", in(`{"$ref":"#/properties"}`), "/properties/a/$ref", "not refer to a schema of this file"},
		{"$ref to itself", in(`{"$ref":"#/properties/a"}`), "/properties/a", "contains itself"},
		{"$ref to the top", in(`{"$ref":"#"}`), "", "contains itself"},
		{"$ref in a circle", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"additionalProperties":false,"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/y"}},"y":{"$ref":"#/$defs/x"}}}`, "/$defs/x", "contains itself"},
		{"an unused circle", `{"type":"object","additionalProperties":false,"$defs":{"x":{"$ref":"#/$defs/x"}}}`, "/$defs/x", "contains itself"},
		{"lookahead", in(`{"type":"string","pattern":"^(?=a)b"}`), "/properties/a/pattern", "lookahead"},
		{"back reference", in(`{"type":"string","pattern":"(a)\\1"}`), "/properties/a/pattern", "RE2"},
		{"type unknown", in(`{"type":"text"}`), "/properties/a/type", ""},
		{"type is a number", in(`{"type":5}`), "/properties/a/type", ""},
		{"properties is a list", `{"type":"object","properties":[],"additionalProperties":false}`, "/properties", ""},
		{"required is a string", `{"type":"object","properties":{},"required":"a","additionalProperties":false}`, "/required", ""},
		{"minimum is a string", in(`{"type":"integer","minimum":"1"}`), "/properties/a/minimum", ""},
		{"enum is empty", in(`{"enum":"x"}`), "/properties/a/enum", ""},
		{"a schema is a string", in(`"string"`), "/properties/a", ""},
		{"negative length", in(`{"type":"string","minLength":-1}`), "/properties/a/minLength", ""},
		{"default of another type", in(`{"type":"integer","default":"5"}`), "/properties/a/default", "must be an integer"},
		{"default out of bounds", in(`{"type":"integer","maximum":10,"default":50}`), "/properties/a/default", "at most 10"},
		{"default not in the enum", in(`{"enum":["x"],"default":"y"}`), "/properties/a/default", `must be "x"`},
		{"default object without a required property", in(`{"type":"object","default":{},"properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`), "/properties/a/default", "missing"},
		{"not", in(`{"type":"integer","not":{"const":1}}`), "/properties/a/not", "list the allowed values instead"},
		{"duplicate", `{"type":"object","type":"object","additionalProperties":false}`, "/type", "twice"},
		{"huge number", in(`{"type":"number","maximum":1e999999999}`), "/properties/a/maximum", "exponent"},
		{"too large", in(`{"type":"string","description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`), "", "at most"},
		{"too deep", in(strings.Repeat(`{"type":"array","items":`, 100) + `{"type":"string"}` + strings.Repeat("}", 100)), "/properties/a/items", "nests deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := CompileParameters(json.RawMessage(tt.schema))
			for _, p := range problems {
				if (p.Path == tt.path || tt.name == "too deep" && strings.HasPrefix(p.Path, tt.path)) && strings.Contains(p.Message, tt.message) {
					return
				}
			}
			t.Errorf("got %v, want %q at %q", problems, tt.message, tt.path)
		})
	}
}

// TestCompileParametersTakes has valid schemas that might be refused by mistake.
func TestCompileParametersTakes(t *testing.T) {
	in := func(a string) string {
		return `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":` + a + `},"additionalProperties":false,
			"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"}},"additionalProperties":false}}}`
	}
	for _, a := range []string{
		`{"type":"string","title":"A","description":"d","examples":["x"],"deprecated":true,"$comment":"c"}`,
		`{"enum":["x",null]}`, `{"const":{"any":"thing"}}`, `{"type":["string","null"]}`,
		`{"$ref":"#/$defs/point"}`, `{"$ref":"#/$defs/point","description":"d"}`, `{"$ref":"#/$defs/point/properties/x"}`,
		`{"type":"array","items":{"$ref":"#/$defs/point"}}`,
		`{"anyOf":[{"$ref":"#/$defs/point"},{"type":"null"}]}`, `{"oneOf":[{"const":1},{"type":"string"}]}`,
		`{"allOf":[{"$ref":"#/$defs/point"},{"minProperties":1}]}`,
		`{"type":"object","properties":{"b":{"type":"integer"}},"additionalProperties":false,"anyOf":[{"required":["b"]},{"properties":{"b":{"minimum":1}}}]}`,
		`{"type":"string","pattern":"^\\p{L}+$","format":"email"}`,
		`{"type":"object","properties":{"anyOf":{"type":"string"},"default":{"type":"string"},"$ref":{"type":"string"},"type":{"type":"string"}},"additionalProperties":false}`,
		`{"type":"number","minimum":0,"exclusiveMaximum":1e3,"multipleOf":0.1}`,
	} {
		if _, problems := CompileParameters(json.RawMessage(in(a))); len(problems) > 0 {
			t.Errorf("%s: %v", a, problems)
		}
	}
}

// TestSchemaThatGrows doubles with each of its definitions: small as written, and too large for a provider's form.
func TestSchemaThatGrows(t *testing.T) {
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}},"additionalProperties":false}`, i, i+1, i+1))
	}
	defs = append(defs, `"d40":{"type":"string"}`)
	_, problems := CompileParameters(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"additionalProperties":false,"$defs":{` + strings.Join(defs, ",") + `}}`))
	if len(problems) != 2 || !strings.Contains(problems[1].Message, "5000 parts") && !strings.Contains(problems[0].Message, "5000 parts") {
		t.Errorf("got %v", problems)
	}
}

// TestNothingIsOpened tests the library itself, without the earlier check that refuses such a $ref.
func TestNothingIsOpened(t *testing.T) {
	for _, ref := range []string{"file:///etc/hostname", "http://127.0.0.1:1/x", "/etc/hostname", "other.json"} {
		compiler, err := newCompiler(json.RawMessage(`{"$ref":"` + ref + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = compiler.Compile(schemaURL)
		problems := problemsOf(err)
		if len(problems) != 1 || !strings.Contains(problems[0].Message, errNothingOpened.Error()) {
			t.Errorf("%s: %v", ref, problems)
		}
	}
}
