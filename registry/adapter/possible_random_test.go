package adapter

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// values are tried with random schemas.
var values = []any{
	nil, true, false, "", "a", "b", "ab", "abc", "0", "12", "2026-01-31", "a@b.co", "https://a.b/c", "x y",
	json.Number("0"), json.Number("1"), json.Number("2"), json.Number("3"), json.Number("6"), json.Number("-1"), json.Number("1.5"), json.Number("2.50"),
	[]any{}, []any{"a"}, []any{"a", "b"}, []any{"a", "a"}, []any{json.Number("1"), json.Number("2")}, []any{true, false}, []any{nil},
	map[string]any{}, map[string]any{"p": "a"}, map[string]any{"q": json.Number("1")}, map[string]any{"p": "a", "q": json.Number("2")}, map[string]any{"p": "ab", "r": true},
}

// randomSchema is a schema of a few keywords that may or may not fit each other.
func randomSchema(r *rand.Rand, depth int) string {
	var parts []string
	some := func(chance float64, format string, args ...any) {
		if r.Float64() < chance {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	sub := func() string { return `{"type":"string","maxLength":2}` }
	if depth > 0 {
		sub = func() string { return randomSchema(r, depth-1) }
	}
	types := []string{`"string"`, `"integer"`, `"number"`, `"boolean"`, `"null"`, `"array"`, `"object"`, `["string","null"]`, `["integer","string"]`}
	some(1, `"type":%s`, types[r.IntN(len(types))])
	some(1, `"properties":{"p":%s,"q":%s},"additionalProperties":false`, sub(), sub())
	some(1, `"items":%s`, sub())
	some(0.4, `"minLength":%d`, r.IntN(5))
	some(0.4, `"maxLength":%d`, r.IntN(4))
	some(0.15, `"pattern":%q`, []string{"^a", "b$", "^[0-9]+$", "^(ab)+$", "^$", `\bx\b`, "[^a]", "^.{2,3}$"}[r.IntN(8)])
	some(0.1, `"format":%q`, []string{"date", "email", "uri", "ipv4"}[r.IntN(4)])
	some(0.4, `"minimum":%d`, r.IntN(5)-1)
	some(0.4, `"maximum":%d`, r.IntN(5)-1)
	some(0.1, `"exclusiveMinimum":%d`, r.IntN(3))
	some(0.1, `"exclusiveMaximum":%d`, r.IntN(4))
	some(0.15, `"multipleOf":%s`, []string{"2", "3", "0.5", "1.5"}[r.IntN(4)])
	some(0.4, `"minItems":%d`, r.IntN(4))
	some(0.4, `"maxItems":%d`, r.IntN(3))
	some(0.15, `"uniqueItems":true`)
	some(0.4, `"minProperties":%d`, r.IntN(4))
	some(0.15, `"maxProperties":%d`, r.IntN(3))
	some(0.4, `"required":["p"]`)
	some(0.1, `"dependentRequired":{"p":["q"]}`)
	if r.Float64() < 0.12 {
		var list []string
		for range 1 + r.IntN(3) {
			list = append(list, canonicalJSON(values[r.IntN(len(values))]))
		}
		parts = append(parts, `"enum":[`+strings.Join(list, ",")+`]`)
	}
	some(0.05, `"const":%s`, canonicalJSON(values[r.IntN(len(values))]))
	if depth > 0 {
		some(0.1, `"anyOf":[%s,%s]`, sub(), sub())
		some(0.05, `"oneOf":[%s,%s]`, sub(), sub())
		some(0.05, `"allOf":[%s,%s]`, sub(), sub())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func canonicalJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestNeverRefusesWhatHasAValue: of random schemas none is called impossible that takes one
// of the values at hand; and a value that is found is valid, whichever is looked for.
func TestNeverRefusesWhatHasAValue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	impossible, unknown, possible := 0, 0, 0
	for range 600 {
		text := withA(randomSchema(r, 1))
		o, a, err := solveA(text)
		if err != nil {
			continue
		}
		var taken any
		takes := false
		checks := newSolver()
		for _, v := range values {
			if valid, _ := checks.accepts(o, v); valid {
				taken, takes = v, true
				break
			}
		}
		for _, v := range a.values {
			if valid, why := checks.accepts(o, v); !valid {
				t.Errorf("%s\nfound %v, which is not valid: %s", text, v, why)
			}
		}
		switch {
		case a.none() && takes:
			t.Errorf("%s\nsaid to be impossible (%s), and takes %s", text, a.why, canonicalJSON(taken))
		case a.none():
			impossible++
		case len(a.values) == 0:
			unknown++
			if takes {
				t.Logf("not found: %s takes %s", text, canonicalJSON(taken))
			}
		default:
			possible++
		}
		for _, p := range check(text) {
			if p.Path == "/properties/a" && !p.Unknown && takes {
				t.Errorf("%s\n%s, and it takes %s", text, p.Message, canonicalJSON(taken))
			}
		}
	}
	t.Logf("%d possible, %d impossible, %d unknown", possible, impossible, unknown)
	if impossible < 20 || possible < 100 || unknown > (possible+impossible)/50 {
		t.Errorf("%d possible, %d impossible, %d unknown", possible, impossible, unknown)
	}
}

// FuzzPossible: any bytes have an answer, and always the same.
func FuzzPossible(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add([]byte(withA(randomSchema(r, 1))))
	}
	for _, seed := range []string{
		``, `{`, `true`, `{"$ref":"#"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, `{"anyOf":[{"$ref":"#"},{"type":"string"}]}`,
		`{"minimum":1e999999999}`, `{"type":"string","pattern":"((a{0,100}){0,100}){0,100}"}`, `{"pattern":"(x+x+)+y","minLength":65000}`,
		`{"$ref":"#/properties/%25","properties":{"%":{"$anchor":"x"}}}`, `{"type":"array","minItems":30000,"uniqueItems":true,"items":{"type":"number"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first := report(check(data))
		if again := report(check(data)); again != first {
			t.Errorf("%q\nfirst %sthen  %s", data, first, again)
		}
	})
}

// solveA returns the inlined schema of the property a and the answer for three values of it; an
// error if the schema has no forms.
func solveA(text json.RawMessage) (*object, answer, error) {
	if _, _, err := All(text); err != nil {
		return nil, answer{}, err
	}
	var p problems
	a, _ := canonical(text, &p).sub("properties").get("a")
	o, ok := a.(*object)
	if !ok {
		return nil, answer{}, fmt.Errorf("a is %v", a)
	}
	s := newSolver()
	return o, s.solve(o, 3), nil
}
