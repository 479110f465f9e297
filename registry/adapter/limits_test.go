package adapter_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"voicegw/registry/adapter"
)

// wantProblem fails unless a problem has the path, the keyword and the part of a message.
func wantProblem(t *testing.T, err error, path, keyword, part string) {
	t.Helper()
	list := problemsOf(t, err)
	if !slices.ContainsFunc(list, func(p adapter.Problem) bool {
		return p.Path == path && p.Keyword == keyword && strings.Contains(p.Message, part)
	}) {
		t.Errorf("no problem at %q with %q that says %q, but %v", path, keyword, part, list)
	}
}

func object(properties string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + properties + `},"additionalProperties":false}`)
}

func TestLimits(t *testing.T) {
	nest := func(n int, open, inner, end string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	var chain strings.Builder
	for i := range 200 {
		fmt.Fprintf(&chain, `"d%d":{"type":"array","items":{"$ref":"#/$defs/d%d"}},`, i, i+1)
	}
	cases := []struct {
		name   string
		schema string
		part   string
	}{
		{"size", `{"type":"object","description":"` + strings.Repeat("x", adapter.MaxBytes) + `"}`, "more than 65536"},
		{"depth", string(object(`"v":` + nest(70, `{"type":"array","items":`, `{"type":"string"}`, `}`))), "nested too deeply"},
		{"depth of a value", string(object(`"v":{"type":"string","examples":` + nest(70, `[`, `1`, `]`) + `}`)), "nested too deeply"},
		{"depth through references", `{"type":"object","properties":{"v":{"$ref":"#/$defs/d0"}},"additionalProperties":false,"$defs":{` + chain.String() + `"d200":{"type":"string"}}}`, "64 levels"},
		{"unclosed", strings.Repeat("[", 100000), "more than"},
		{"empty", "", "not JSON"},
		{"null", "null", "must be a JSON object"},
		{"digits", string(object(`"v":{"type":"number","minimum":0.` + strings.Repeat("1", 100) + `}`)), "too many digits"},
		{"float overflow", string(object(`"v":{"type":"number","maximum":1e400}`)), "too many digits"},
	}
	for _, c := range cases {
		for form, make := range forms {
			t.Run(c.name+"/"+form, func(t *testing.T) {
				_, err := make(json.RawMessage(c.schema))
				if list := problemsOf(t, err); !strings.Contains(list.Error(), c.part) || len(list.Error()) > 1000 {
					t.Errorf("the error is %.1000s, want a short one with %q", list.Error(), c.part)
				}
			})
		}
	}
}

var forms = map[string]func(json.RawMessage) (json.RawMessage, error){
	"openai": adapter.OpenAIParameters,
	"gemini": adapter.GeminiParameters,
}

// TestManyAlternativesStayBounded multiplies alternatives, which Gemini's form would write out.
func TestManyAlternativesStayBounded(t *testing.T) {
	inner := `{"type":"string"}`
	for range 12 {
		inner = `{"type":"object","properties":{"p":` + inner + `,"q":` + `{"type":"string"}` + `},"additionalProperties":false,"anyOf":[{"required":["p"]},{"required":["q"]},{"maxProperties":1}]}`
	}
	_, err := adapter.GeminiParameters(object(`"v":` + inner))
	wantProblem(t, err, "", "", "more than 4096 subschemas")
	if _, err := adapter.OpenAIParameters(object(`"v":` + inner)); err != nil {
		t.Errorf("OpenAI's form does not multiply: %v", err)
	}
}

func TestPortablePatterns(t *testing.T) {
	for pattern, taken := range map[string]bool{
		`^a$`: true, `(?:ab)+`: true, `\d\w\s\.\\A`: true, `[a\]b]`: true, `\x41`: true, `\p{L}`: true, `[^a-z]`: true, `(a|b)`: true, `[[]`: true,
		`(?i)a`: false, `(?P<n>a)`: false, `(?<n>a)`: false, `\Aa`: false, `a\z`: false, `\Qa.b\E`: false, `[[:alpha:]]`: false, `\pL`: false,
		`[]a]`: false, `[^]a]`: false, `\x{41}`: false, `\012`: false, `a(?=b)`: false, `(?!a)b`: false, `(?<=a)b`: false, `(a)\1`: false,
	} {
		text, err := json.Marshal(pattern)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = adapter.All(object(`"v":{"type":"string","pattern":` + string(text) + `}`))
		if (err == nil) != taken {
			t.Errorf("the pattern %s: %v", pattern, err)
		}
		if err != nil {
			wantProblem(t, err, "/properties/v", "pattern", "remove it")
		}
	}
}

// TestOneBuildShowsEverything has a fault for each stage after the parser.
func TestOneBuildShowsEverything(t *testing.T) {
	_, _, err := adapter.All(object(`
		"e":{"type":"string","pattern":"(?i)x"},
		"größe":{"type":"string"}`))

	wantProblem(t, err, "/properties/e", "pattern", "remove it")
	wantProblem(t, err, "/properties/größe", "properties", "Gemini does not accept the property name")
	if n := len(problemsOf(t, err)); n != 2 {
		t.Errorf("there are %d problems, want 2: %v", n, err)
	}
}

func TestPathsAreJSONPointers(t *testing.T) {
	_, err := adapter.OpenAIParameters(object(`"a/b~c":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"string","pattern":"(?i)x"}]}}`))
	wantProblem(t, err, "/properties/a~1b~0c/items/anyOf/1", "pattern", "remove it")
}

func TestTheInputIsNotChanged(t *testing.T) {
	for name, text := range corpus(t) {
		before := string(text)
		_, _, first := adapter.All(text)
		_, _, second := adapter.All(text)
		if string(text) != before {
			t.Errorf("%s was changed", name)
		}
		if fmt.Sprint(first) != fmt.Sprint(second) {
			t.Errorf("%s: the problems differ from run to run:\n%v\n%v", name, first, second)
		}
	}
}
