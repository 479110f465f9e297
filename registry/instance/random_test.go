package instance

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
	types := []string{`"string"`, `"integer"`, `"number"`, `"boolean"`, `"null"`, `"array"`, `"object"`, `["string","null"]`, `["integer","string"]`}
	some(0.85, `"type":%s`, types[r.IntN(len(types))])
	some(0.2, `"minLength":%d`, r.IntN(4))
	some(0.2, `"maxLength":%d`, r.IntN(4))
	some(0.2, `"pattern":%q`, []string{"^a", "b$", "^[0-9]+$", "^(ab)+$", "^$", `\bx\b`, "[^a]", "^.{2,3}$"}[r.IntN(8)])
	some(0.1, `"format":%q`, []string{"date", "email", "uri", "ipv4"}[r.IntN(4)])
	some(0.2, `"minimum":%d`, r.IntN(5)-1)
	some(0.2, `"maximum":%d`, r.IntN(5)-1)
	some(0.1, `"exclusiveMinimum":%d`, r.IntN(3))
	some(0.1, `"exclusiveMaximum":%d`, r.IntN(4))
	some(0.15, `"multipleOf":%s`, []string{"2", "3", "0.5", "1.5"}[r.IntN(4)])
	some(0.15, `"minItems":%d`, r.IntN(4))
	some(0.15, `"maxItems":%d`, r.IntN(3))
	some(0.15, `"uniqueItems":true`)
	some(0.15, `"minProperties":%d`, r.IntN(4))
	some(0.15, `"maxProperties":%d`, r.IntN(3))
	some(0.15, `"required":["p"]`)
	some(0.1, `"required2":1`)
	some(0.1, `"dependentRequired":{"p":["q"]}`)
	some(0.3, `"additionalProperties":false`)
	if r.Float64() < 0.12 {
		var list []string
		for range 1 + r.IntN(3) {
			list = append(list, canonicalJSON(values[r.IntN(len(values))]))
		}
		parts = append(parts, `"enum":[`+strings.Join(list, ",")+`]`)
	}
	some(0.05, `"const":%s`, canonicalJSON(values[r.IntN(len(values))]))
	if depth > 0 {
		sub := func() string { return randomSchema(r, depth-1) }
		some(0.3, `"properties":{"p":%s,"q":%s}`, sub(), sub())
		some(0.3, `"items":%s`, sub())
		some(0.08, `"prefixItems":[%s]`, sub())
		some(0.08, `"contains":%s`, sub())
		some(0.15, `"anyOf":[%s,%s]`, sub(), sub())
		some(0.1, `"oneOf":[%s,%s]`, sub(), sub())
		some(0.1, `"allOf":[%s,%s]`, sub(), sub())
		some(0.06, `"not":%s`, sub())
		some(0.06, `"if":%s,"then":%s,"else":%s`, sub(), sub(), sub())
		some(0.06, `"propertyNames":{"maxLength":1}`)
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
	for range 500 {
		text := object(randomSchema(r, 2))
		doc, err := newDocument(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		n := doc.node("/properties/a")
		var taken any
		takes := false
		for _, v := range values {
			if valid, known, _ := doc.accepts(n, v); known && valid {
				taken, takes = v, true
				break
			}
		}
		s := solver{doc: doc, known: map[string]answer{}, open: map[string]bool{}}
		a := s.solve([]*node{n}, 3, 0)
		for _, v := range a.values {
			if valid, known, why := doc.accepts(n, v); !valid || !known {
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
		for _, p := range Check(text) {
			if p.Path == "/properties/a" && !p.Unknown && takes {
				t.Errorf("%s\n%s, and it takes %s", text, p.Message, canonicalJSON(taken))
			}
		}
	}
	t.Logf("%d possible, %d impossible, %d unknown", possible, impossible, unknown)
	if impossible < 50 || possible < 200 || unknown > (possible+impossible)/50 {
		t.Errorf("%d possible, %d impossible, %d unknown", possible, impossible, unknown)
	}
}

// FuzzCheck: any bytes have an answer, and always the same.
func FuzzCheck(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add([]byte(object(randomSchema(r, 2))))
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
		first := report(Check(data))
		if again := report(Check(data)); again != first {
			t.Errorf("%q\nfirst %sthen  %s", data, first, again)
		}
	})
}
