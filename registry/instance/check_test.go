package instance

import (
	"encoding/json"
	"strings"
	"testing"
)

// object wraps a property "a" in a schema of parameters.
func object(a string, more ...string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"a":` + a + `},"additionalProperties":false` + strings.Join(append([]string{""}, more...), ",") + `}`)
}

func report(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.Path + ": " + p.Message)
		if p.Unknown {
			b.WriteString(" (?)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestImpossible: each schema has a part that nothing satisfies; it is named with the
// keywords that exclude each other.
func TestImpossible(t *testing.T) {
	tests := []struct{ schema, path, words string }{
		{`{"type":"string","minLength":5,"maxLength":3}`, "/properties/a", "minLength 5 is more than maxLength 3"},
		{`{"type":"string","minLength":70000}`, "/properties/a", "minLength 70000"},
		{`{"type":"string","pattern":"^a$","minLength":2}`, "/properties/a", `pattern "^a$" and minLength 2`},
		{`{"type":"string","pattern":"^a{5}$","maxLength":4}`, "/properties/a", "maxLength 4"},
		{`{"type":"string","pattern":"a^"}`, "/properties/a", "pattern"},
		{`{"type":"string","pattern":"^/^a$/i"}`, "/properties/a", "pattern"},
		{`{"type":"string","pattern":"^[a-z]+$","format":"date"}`, "/properties/a", "format date"},
		{`{"type":"string","format":"date","maxLength":5}`, "/properties/a", "maxLength 5"},
		{`{"type":"string","format":"uuid","minLength":37}`, "/properties/a", "minLength 37"},
		{`{"type":"string","format":"email","pattern":"^[^@]*$"}`, "/properties/a", "format email"},
		{`{"type":"string","format":"ipv4","pattern":"[a-z]"}`, "/properties/a", "format ipv4"},
		{`{"type":"string","format":"date-time","maxLength":19}`, "/properties/a", "format date-time"},
		{`{"type":"string","pattern":"^\\d+$","allOf":[{"pattern":"^[a-z]+$"}]}`, "/properties/a", "pattern"},
		{`{"type":"string","enum":["abc","de"],"minLength":4}`, "/properties/a", "length must be >= 4"},
		{`{"type":"string","enum":["abc"],"pattern":"^\\d+$"}`, "/properties/a", "pattern"},
		{`{"type":"integer","enum":["abc"]}`, "/properties/a", "type"},
		{`{"type":"integer","const":"x"}`, "/properties/a", "type"},
		{`{"type":"string","enum":["abc"],"format":"date"}`, "/properties/a", "date"},
		{`{"enum":[]}`, "/properties/a", "enum is empty"},
		{`{"type":"string","enum":["a","b"],"const":"c"}`, "/properties/a", "enum"},
		{`{"type":"integer","minimum":5,"maximum":3}`, "/properties/a", "minimum 5 and maximum 3"},
		{`{"type":"integer","minimum":5,"exclusiveMaximum":5}`, "/properties/a", "exclusiveMaximum 5"},
		{`{"type":"integer","exclusiveMinimum":5,"exclusiveMaximum":6}`, "/properties/a", "no integer"},
		{`{"type":"integer","minimum":1.2,"maximum":1.8}`, "/properties/a", "no integer"},
		{`{"type":"number","exclusiveMinimum":1,"maximum":1}`, "/properties/a", "exclusiveMinimum 1"},
		{`{"type":"integer","minimum":1,"maximum":9,"multipleOf":10}`, "/properties/a", "multipleOf 10"},
		{`{"type":"number","minimum":0.1,"maximum":0.24,"multipleOf":0.25}`, "/properties/a", "multipleOf 0.25"},
		{`{"type":"integer","minimum":1,"maximum":5,"multipleOf":2,"allOf":[{"multipleOf":3}]}`, "/properties/a", "multipleOf"},
		{`{"type":"integer","minimum":1e30}`, "/properties/a", "the greatest integer 9223372036854775807"},
		{`{"type":"integer","maximum":-1e19}`, "/properties/a", "the least integer -9223372036854775808"},
		{`{"type":"string","format":"ipv4","minLength":16}`, "/properties/a", "no text satisfies format ipv4 and minLength 16"},
		{`{"type":"string","format":"time","pattern":"^[+]"}`, "/properties/a", "no text satisfies"},
		{`{"type":"array","items":{"type":"string"},"minItems":3,"maxItems":2}`, "/properties/a", "minItems 3 is more than maxItems 2"},
		{`{"type":"array","items":{"type":"string","minLength":2,"maxLength":1}}`, "/properties/a/items", "minLength 2"},
		{`{"type":"array","items":{"enum":["x","y"]},"uniqueItems":true,"minItems":3}`, "/properties/a", "only 2 different items"},
		{`{"type":"array","items":{"type":"boolean"},"uniqueItems":true,"minItems":3}`, "/properties/a", "only 2 different items"},
		{`{"type":"array","items":{"type":"integer","minimum":1,"maximum":3},"uniqueItems":true,"minItems":4}`, "/properties/a", "only 3 different items"},
		{`{"type":"array","items":{"type":"string","pattern":"^[ab]{1,2}$"},"uniqueItems":true,"minItems":7}`, "/properties/a", "only 6 different items"},
		{`{"type":"array","items":{"type":"string"},"minItems":40000}`, "/properties/a", "minItems 40000"},
		{`{"type":"array","items":{"type":"integer"},"contains":{"type":"string"}}`, "/properties/a", "contains"},
		{`{"type":"array","items":{"type":"integer"},"contains":{"type":"integer"},"minContains":3,"maxItems":2}`, "/properties/a", "maxItems 2"},
		{`{"type":"object","properties":{"b":{"type":"string"}},"required":["c"],"additionalProperties":false}`, "/properties/a", `"c" is needed and not defined`},
		{`{"type":"object","properties":{"b":{"type":"string"}},"minProperties":2,"additionalProperties":false}`, "/properties/a", "minProperties 2"},
		{`{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"required":["b","c"],"maxProperties":1,"additionalProperties":false}`, "/properties/a", "maxProperties 1"},
		{`{"type":"object","properties":{"b":{"type":"string"}},"minProperties":2,"maxProperties":1,"additionalProperties":false}`, "/properties/a", "minProperties"},
		{`{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"required":["b"],"maxProperties":1,"additionalProperties":false}`, "/properties/a/properties/c", `"c" can never be sent`},
		{`{"type":"object","properties":{"b":{"type":"string"}},"dependentRequired":{"b":["d"]},"additionalProperties":false}`, "/properties/a/properties/b", `"b" can never be sent`},
		{`{"type":"object","properties":{"b":{"type":"integer","minimum":2,"maximum":1}},"additionalProperties":false}`, "/properties/a/properties/b", "minimum 2"},
		{`{"allOf":[{"type":"string"},{"type":"integer"}]}`, "/properties/a", "exclude each other"},
		{`{"type":"string","anyOf":[{"minLength":5,"maxLength":4},{"minLength":1}]}`, "/properties/a/anyOf/0", "minLength 5"},
		{`{"type":"string","maxLength":3,"anyOf":[{"minLength":4},{"minLength":1}]}`, "/properties/a/anyOf/0", "minLength 4"},
		{`{"type":"integer","oneOf":[{"type":"string"},{"type":"integer"}]}`, "/properties/a/oneOf/0", "exclude each other"},
		{`{"type":["string","integer"],"minLength":3,"maxLength":2,"minimum":4,"maximum":3}`, "/properties/a", "minimum 4"},
		{`{"type":"string","if":{"minLength":1},"then":{"type":"integer"},"else":{"minLength":3,"maxLength":1}}`, "/properties/a", "exclude each other"},
		{`{"type":"string","enum":["a","bb","ccc"],"maxLength":2}`, "/properties/a/enum/2", "can never be sent"},
		{`{"type":["string"],"enum":["a",null]}`, "/properties/a/enum/1", "can never be sent"},
		{`{"$ref":"#/properties/b","maxLength":2}`, "/properties/a", "minLength (/properties/b/minLength) 3"},
	}
	for _, tt := range tests {
		schema := object(tt.schema)
		if strings.Contains(tt.schema, "/properties/b") {
			schema = json.RawMessage(`{"type":"object","properties":{"a":` + tt.schema + `,"b":{"type":"string","minLength":3}},"additionalProperties":false}`)
		}
		problems := Check(schema)
		if len(problems) != 1 || problems[0].Unknown || problems[0].Path != tt.path || !strings.Contains(problems[0].Message, tt.words) {
			t.Errorf("%s\nwant %s: … %s\ngot  %s", tt.schema, tt.path, tt.words, report(problems))
		}
	}
}

// TestDoubts: a problem is marked as unknown if valid values exist or nothing was proved.
func TestDoubts(t *testing.T) {
	for _, tt := range []struct{ schema, path, words string }{
		{`{"type":["string","null"],"enum":["a","b"]}`, "/properties/a/type", "No value of the type null"},
		{`{"type":["string","integer"],"minimum":4,"maximum":3}`, "/properties/a/type", "minimum 4 and maximum 3"},
		{`{"type":"string","pattern":"^(a|b)*a(a|b){14}$"}`, "/properties/a", "but one may exist"},
	} {
		if problems := Check(object(tt.schema)); len(problems) != 1 || !problems[0].Unknown || problems[0].Path != tt.path || !strings.Contains(problems[0].Message, tt.words) {
			t.Errorf("%s\nwant %s: … %s\ngot  %s", tt.schema, tt.path, tt.words, report(problems))
		}
	}
	lists := `{"type":"number"}`
	for range 6 {
		lists = `{"type":"array","uniqueItems":true,"minItems":2000,"items":` + lists + `}`
	}
	if problems := Check(object(lists)); len(problems) == 0 || !problems[0].Unknown {
		t.Errorf("lists of lists: %s", report(problems))
	}
	shared := Check(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string","minLength":2,"maxLength":1},"e":{"enum":[]}}}`))
	if len(shared) != 3 || shared[0].Path != "/$defs/e" {
		t.Errorf("definitions: %s", report(shared))
	}
}

// TestPossible: nothing is said of schemas that have a value.
func TestPossible(t *testing.T) {
	for _, schema := range []string{
		`{"type":"string"}`, `{"type":"string","maxLength":0}`, `{"type":"string","minLength":60000}`,
		`{"type":"string","pattern":"^[A-Z]{2}\\d{4}$","minLength":6,"maxLength":6}`,
		`{"type":"string","pattern":"\\bcat\\b"}`, `{"type":"string","pattern":"^(?:a|bb)*$","minLength":9}`,
		`{"type":"string","pattern":"^\\p{Lu}\\p{L}{3,500}$"}`, `{"type":"string","pattern":"^.{900,1000}$"}`,
		`{"type":"string","pattern":"^\\+[1-9]\\d{1,14}$"}`, `{"type":"string","pattern":"^[^\\s@]+@[^\\s@]+$","format":"email"}`,
		`{"type":"string","format":"email","pattern":"@acme\\.com$","maxLength":20}`,
		`{"type":"string","format":"uri","pattern":"^https://"}`, `{"type":"string","format":"uri","pattern":"^https://git\\.example\\.org/[a-z]+/[0-9]+$"}`,
		`{"type":"string","format":"ipv6","pattern":"^fe80:"}`, `{"type":"string","format":"ipv4","pattern":"^172\\.16\\."}`,
		`{"type":"string","format":"date","pattern":"^2027-"}`, `{"type":"string","format":"date-time","pattern":"Z$","minLength":25}`,
		`{"type":"string","format":"time","pattern":"^23:"}`, `{"type":"string","format":"uuid","pattern":"^0{8}"}`, `{"type":"string","format":"email","minLength":100}`,
		`{"type":"string","format":"uri","maxLength":12}`,
		`{"type":"string","pattern":"[0-9]","allOf":[{"pattern":"[a-z]"},{"pattern":"^.{3}$"}]}`,
		`{"type":"string","enum":["a","b"]}`, `{"const":null}`, `{"enum":[1,"a",null,[1],{"b":2}]}`,
		`{"type":"integer","minimum":5,"maximum":5}`, `{"type":"integer","exclusiveMinimum":5,"exclusiveMaximum":7}`,
		`{"type":"integer","maximum":-3,"multipleOf":7}`, `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1e-9}`,
		`{"type":"number","minimum":0.1,"maximum":0.3,"multipleOf":0.1}`, `{"type":"number","multipleOf":0.3,"allOf":[{"multipleOf":0.2}],"minimum":0.1}`,
		`{"type":"number","minimum":1e30}`, `{"type":["integer","string"],"minimum":1e30}`, `{"type":"integer","minimum":9223372036854775807}`, `{"type":"number","not":{"const":0}}`, `{"type":"integer","minimum":3,"not":{"enum":[3,4,5]}}`,
		`{"type":"array","items":{"type":"string"},"maxItems":0}`, `{"type":"array","items":{"type":"boolean"},"uniqueItems":true,"minItems":2}`,
		`{"type":"array","items":{"type":"integer"},"uniqueItems":true,"minItems":1000}`, `{"type":"array","items":{"type":"string","pattern":"^[ab]{1,2}$"},"uniqueItems":true,"minItems":6}`,
		`{"type":"array","items":{"type":"string"},"minItems":20000}`, `{"type":"array","items":{"type":"array","items":{"enum":[1,2]},"minItems":1},"uniqueItems":true,"minItems":3}`,
		`{"type":"array","items":{"type":"object","properties":{"b":{"type":"boolean"}},"additionalProperties":false},"uniqueItems":true,"minItems":3}`,
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2}`,
		`{"type":"array","items":{"type":["string","integer"]},"contains":{"type":"integer"},"minContains":2}`,
		`{"type":"object","properties":{},"additionalProperties":false}`,
		`{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"dependentRequired":{"b":["c"]},"required":["b"],"additionalProperties":false}`,
		`{"type":"object","properties":{"b":false,"c":{"type":"string"}},"minProperties":1,"additionalProperties":false}`,
		`{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]}`,
		`{"oneOf":[{"type":"object","properties":{"k":{"const":"x"}},"required":["k"],"additionalProperties":false},{"type":"object","properties":{"k":{"const":"y"}},"required":["k"],"additionalProperties":false}]}`,
		`{"type":"integer","if":{"minimum":10},"then":{"multipleOf":10},"else":{"maximum":5}}`,
		`{"type":"string","pattern":"^(([a-z0-9]+)([-._][a-z0-9]+)*)/(([a-z0-9]+)([-._][a-z0-9]+)*)$","maxLength":214}`,
		`{"type":"string","examples":["aXbbbbbbbbbbbbbbbbbbb"],"pattern":"^(a|b|X)*X(a|b){19}$"}`,
	} {
		if problems := Check(object(schema)); len(problems) > 0 {
			t.Errorf("%s\n%s", schema, report(problems))
		}
	}
}
