package adapter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// withA is a schema of parameters whose property a is of a schema.
func withA(a string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"a":` + a + `},"additionalProperties":false}`)
}

// doubt is a problem that Possible finds.
type doubt struct {
	Problem
	Unknown bool
}

// check returns what Possible finds, what is impossible first.
func check(schema json.RawMessage) []doubt {
	var all []doubt
	impossible, doubtful := Possible(schema)
	for _, p := range impossible {
		all = append(all, doubt{p, false})
	}
	for _, p := range doubtful {
		all = append(all, doubt{p, true})
	}
	return all
}

func report(doubts []doubt) string {
	var b strings.Builder
	for _, d := range doubts {
		fmt.Fprintf(&b, "%s: %s (unknown: %t)\n", d.Path, d.Message, d.Unknown)
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
		{`{"type":"string","enum":["abc","de"],"minLength":4}`, "/properties/a", "length must be >= 4"},
		{`{"type":"string","enum":["abc"],"pattern":"^\\d+$"}`, "/properties/a", "pattern"},
		{`{"type":"string","enum":["abc"],"format":"date"}`, "/properties/a", "date"},
		{`{"type":"integer","minimum":5,"maximum":3}`, "/properties/a", "minimum 5 and maximum 3"},
		{`{"type":"integer","minimum":5,"exclusiveMaximum":5}`, "/properties/a", "exclusiveMaximum 5"},
		{`{"type":"integer","exclusiveMinimum":5,"exclusiveMaximum":6}`, "/properties/a", "no integer"},
		{`{"type":"integer","minimum":1.2,"maximum":1.8}`, "/properties/a", "no integer"},
		{`{"type":"number","exclusiveMinimum":1,"maximum":1}`, "/properties/a", "exclusiveMinimum 1"},
		{`{"type":"integer","minimum":1,"maximum":9,"multipleOf":10}`, "/properties/a", "multipleOf 10"},
		{`{"type":"number","minimum":0.1,"maximum":0.24,"multipleOf":0.25}`, "/properties/a", "multipleOf 0.25"},
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
		{`{"type":"object","properties":{"b":{"type":"string"}},"minProperties":2,"additionalProperties":false}`, "/properties/a", "minProperties 2"},
		{`{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"required":["b","c"],"maxProperties":1,"additionalProperties":false}`, "/properties/a", "maxProperties 1"},
		{`{"type":"object","properties":{"b":{"type":"string"}},"minProperties":2,"maxProperties":1,"additionalProperties":false}`, "/properties/a", "minProperties"},
		{`{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"required":["b"],"maxProperties":1,"additionalProperties":false}`, "/properties/a/properties/c", `"c" can never be sent`},
		{`{"type":"object","properties":{"b":{"type":"string"}},"dependentRequired":{"b":["d"]},"additionalProperties":false}`, "/properties/a/properties/b", `"b" can never be sent`},
		{`{"type":"object","properties":{"b":{"type":"integer","minimum":2,"maximum":1}},"additionalProperties":false}`, "/properties/a/properties/b", "minimum 2"},
		{`{"type":"string","anyOf":[{"minLength":5,"maxLength":4},{"minLength":1}]}`, "/properties/a/anyOf/0", "minLength 5"},
		{`{"type":"string","maxLength":3,"anyOf":[{"minLength":4},{"minLength":1}]}`, "/properties/a/anyOf/0", "minLength 4"},
		{`{"type":"integer","oneOf":[{"type":"string"},{"type":"integer"}]}`, "/properties/a/oneOf/0", "exclude each other"},
		{`{"type":["string","integer"],"minLength":3,"maxLength":2,"minimum":4,"maximum":3}`, "/properties/a", "minimum 4"},
		{`{"type":"string","enum":["a","bb","ccc"],"maxLength":2}`, "/properties/a/enum/2", "can never be sent"},
		{`{"type":["string"],"enum":["a",null]}`, "/properties/a/enum/1", "can never be sent"},
		{`{"$ref":"#/properties/b","maxLength":2}`, "/properties/a", "minLength (/properties/b/minLength) 3"},
	}
	for _, tt := range tests {
		schema := withA(tt.schema)
		if strings.Contains(tt.schema, "/properties/b") {
			schema = json.RawMessage(`{"type":"object","properties":{"a":` + tt.schema + `,"b":{"type":"string","minLength":3}},"additionalProperties":false}`)
		}
		problems := check(schema)
		if len(problems) != 1 || problems[0].Unknown || problems[0].Path != tt.path || !strings.Contains(problems[0].Message, tt.words) {
			t.Errorf("%s\nwant %s: … %s\ngot  %s", tt.schema, tt.path, tt.words, report(problems))
		}
	}
}

// TestContradictionsHaveNoForm: where two parts of a schema exclude each other, the forms say so,
// and Possible does not repeat it.
func TestContradictionsHaveNoForm(t *testing.T) {
	for schema, words := range map[string]string{
		`{"type":"integer","enum":["abc"]}`:                "no value of the enum is of type integer",
		`{"type":"integer","const":"x"}`:                   "no value of the enum is of type integer",
		`{"enum":[]}`:                                      "no value of the enum",
		`{"type":"string","enum":["a","b"],"const":"c"}`:   "the enums have no value in common",
		`{"allOf":[{"type":"string"},{"type":"integer"}]}`: "exclude each other",
		`{"type":"object","properties":{},"required":["c"],"additionalProperties":false}`: `"c" is required`,
	} {
		if _, _, err := All(withA(schema)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", schema, err)
		}
		if doubts := check(withA(schema)); len(doubts) > 0 {
			t.Errorf("%s\n%s", schema, report(doubts))
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
		if problems := check(withA(tt.schema)); len(problems) != 1 || !problems[0].Unknown || problems[0].Path != tt.path || !strings.Contains(problems[0].Message, tt.words) {
			t.Errorf("%s\nwant %s: … %s\ngot  %s", tt.schema, tt.path, tt.words, report(problems))
		}
	}
	lists := `{"type":"number"}`
	for range 6 {
		lists = `{"type":"array","uniqueItems":true,"minItems":2000,"items":` + lists + `}`
	}
	if problems := check(withA(lists)); len(problems) == 0 || !problems[0].Unknown {
		t.Errorf("lists of lists: %s", report(problems))
	}
	shared := check(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"}},"additionalProperties":false,"$defs":{"d":{"type":"string","minLength":2,"maxLength":1}}}`))
	if len(shared) != 2 || shared[0].Path != "/properties/a" || shared[1].Path != "/properties/b" {
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
		if problems := check(withA(schema)); len(problems) > 0 {
			t.Errorf("%s\n%s", schema, report(problems))
		}
	}
}
