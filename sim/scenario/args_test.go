package scenario

import (
	"encoding/json"
	"fmt"
	"testing"
)

func booking(property string, required bool) Tool {
	needs := ""
	if required {
		needs = `,"required":["it"]`
	}
	return Tool{Name: "book_table", Description: "Book a table in the restaurant.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"it":` + property + `}` + needs + `}`)}
}

// TestArgumentsByTheirForm: a missing required value is made up, a missing optional one is left out.
func TestArgumentsByTheirForm(t *testing.T) {
	const said, silent = "Book a table in the restaurant on 2026-03-04 at 9:30 for ada@example.org, 4 people", "Book a table in the restaurant"
	for name, tc := range map[string]struct{ property, said, needed string }{
		"a date":                {`{"type":"string","format":"date"}`, `"2026-03-04"`, `"2026-01-15"`},
		"a time":                {`{"type":"string","format":"time"}`, `"9:30:00Z"`, `"10:00:00Z"`},
		"a date and time":       {`{"type":"string","format":"date-time"}`, `"2026-03-04T09:30:00Z"`, `"2026-01-15T10:00:00Z"`},
		"an address":            {`{"type":"string","format":"email"}`, `"ada@example.org"`, `"someone@example.com"`},
		"a number":              {`{"type":"integer"}`, `4`, `1`},
		"a number with a bound": {`{"type":"integer","minimum":3}`, `4`, `3`},
		"a default":             {`{"type":"integer","default":7}`, `4`, `7`},
		"an example":            {`{"type":"integer","examples":[8]}`, `4`, `8`},
		"a choice":              {`{"type":"string","enum":["garden","people"]}`, `"people"`, `"garden"`},
		"a choice's default":    {`{"type":"string","enum":["garden","people"],"default":"hall"}`, `"people"`, `"hall"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				text     string
				required bool
				want     string
			}{
				{said, true, `{"it":` + tc.said + `}`}, {said, false, `{"it":` + tc.said + `}`},
				{silent, true, `{"it":` + tc.needed + `}`}, {silent, false, `{}`},
			} {
				got := Default().NewDialogue(1).Hear(typed(c.text), Context{Tools: []Tool{booking(tc.property, c.required)}, ToolNamed: "book_table"})
				want(t, got, "heard "+c.text, "call book_table "+c.want)
			}
		})
	}
}

// TestArgumentsMadeUp: made-up values are the same each time.
func TestArgumentsMadeUp(t *testing.T) {
	const text = "Book a table in the restaurant"
	for property, made := range map[string]string{
		`{"type":"string","format":"uri"}`:                                         `"https://example.com/"`,
		`{"type":"string","format":"uuid"}`:                                        `"00000000-0000-4000-8000-000000000000"`,
		`{"type":"boolean"}`:                                                       `true`,
		`{"type":"boolean","default":false}`:                                       `false`,
		`{"type":"array","items":{"type":"integer"}}`:                              `[1]`,
		`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`: `{"n":1}`,
	} {
		got := Default().NewDialogue(1).Hear(typed(text), Context{Tools: []Tool{booking(property, true)}, ToolNamed: "book_table"})
		want(t, got, "heard "+text, fmt.Sprintf(`call book_table {"it":%s}`, made))
	}
}

func TestBooleanArguments(t *testing.T) {
	tool := Tool{Name: "book_table", Description: "Book a table in the restaurant.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"outside":{"type":"boolean"}}}`)}
	for text, args := range map[string]string{
		"Book a table in the restaurant outside":      `{"outside":true}`,
		"Book a table in the restaurant, not outside": `{"outside":false}`,
		"Book a table in the restaurant":              `{}`,
	} {
		want(t, Default().NewDialogue(1).Hear(typed(text), Context{Tools: []Tool{tool}, ToolNamed: "book_table"}), "heard "+text, "call book_table "+args)
	}
}

// TestResultsByPath: a template takes a part of a result, or an empty text if it is missing.
func TestResultsByPath(t *testing.T) {
	result := map[string]any{"items": []any{map[string]any{"name": "tea", "price": 2.5}}, "none": nil, "ok": true}
	for path, found := range map[string]string{
		"items.0.name": "tea", "items.0.price": "2.5", "items.1.name": "", "items.x": "", "ok": "true", "none": "", "ok.deeper": "", "other": "",
		"items.0": `{"name":"tea","price":2.5}`,
	} {
		s := mustParse(t, `{rules: [{when: {text: any}, do: [{call: a}, {then: [{say: "It is <${result.`+path+`}>."}]}]}]}`)
		d := s.NewDialogue(1)
		d.Hear(typed("x"), Context{Tools: []Tool{{Name: "a"}}})
		data, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		want(t, d.Results([]Result{{Name: "a", Output: string(data)}}, Context{}), "say It is <"+found+">.")
	}
}
