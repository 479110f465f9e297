package scenario

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/internal/strict"
)

// problems lists the problems from Parse as "line: text", cut at the first colon or comma.
func problems(t *testing.T, text string) string {
	t.Helper()
	_, err := Parse("f.yaml", []byte(text))
	if err == nil {
		return ""
	}
	var e *strict.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T: %v", err, err)
	}
	var b strings.Builder
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "%d: %s\n", p.Line, p.Text)
	}
	return b.String()
}

func TestEveryProblemIsNamedWithItsLine(t *testing.T) {
	got := problems(t, `name: x
extra: 1
start:
  - say: ""
  - shout: hello
rules:
  - when: {utterance: 0}
    do: [{wait: fast}]
  - when: {text: '(', tool: x}
    do: auto
  - when: {text: '('}
    do: [{say: "${nobody}"}]
  - when: {tool: a, ok: true, error: X}
    heard: no
    do: [{call: {args: [1]}}]
  - do: [{say: a, wait: 1}]
  - when: {text: hi}
  - when: {text: hi, ok: true}
    do:
      - then: [{say: x}]
      - call: a
      - say: too late
      - call: b
      - then: [{say: "${result.x}"}]
      - then: [{say: y}]
      - wait: 5
  - when: {uterance: 1}
    do: [{end: {code: 1006}}, {fault: {do: explode}}, {say: "${text"}]
    times: many
  - when: {text: kept}
    do:
      - remember: {}
      - remember: {result: x, "a b": y, kept: "${nobody}"}
      - say: "${kept}"
      - call: {tool: a, id: x, without_id: true}
`)
	for _, want := range []string{
		`2: a scenario has no key "extra"; it knows name, start, rules and otherwise`,
		`4: say is empty`,
		`5: a step has no key "shout"`,
		`7: utterance (a number, or any) must be a whole number from 1 to 1000000, not "0"`,
		`8: wait must be a time such as 500ms or 2s (a bare number is ms), at most 1h0m0s, not "fast"`,
		`9: when needs exactly one of utterance, text, tool and prompt`,
		`11: text is not a valid regular expression`,
		`12: say uses ${nobody}, which is unknown here; known are text, seconds, duration, utterance, history, memory, today, tomorrow, event and kept`,
		`13: a result that is ok has no error`,
		`14: heard goes with when: {utterance: …}`,
		`15: the call names no tool`,
		`15: args must be a mapping`,
		`16: the rule has no condition`,
		`16: a step does one thing`,
		`17: the rule does nothing`,
		`18: ok goes with tool`,
		`20: then has no call before it`,
		`22: say comes after call; what is said after the results belongs in then`,
		`23: there is a second call`,
		`25: there is a second then`,
		`32: remember is empty`,
		`33: ${result} is reserved`,
		`33: "a b" is not a variable name`,
		`33: remember uses ${nobody}, which is unknown here`,
		`35: a call cannot both have an id and be without one`,
		`26: wait comes after then or on_error`,
		`27: when has no key "uterance" (did you mean "utterance"?)`,
		`28: code 1006 cannot be sent in a close frame`,
		`28: do cannot be "explode"`,
		`28: say: a ${ does not begin a variable`,
		`29: times must be a whole number`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Logf("got\n%s", got)
	}
}

func TestInvalidFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "0: the file is empty\n",
		"name: x":                        "1: the scenario is empty",
		"- a":                            "1: a scenario must be a mapping",
		"a: b: c":                        "this is not YAML",
		"rules: []":                      "1: rules is an empty list",
		"---\nname: x\n---\n":            "there is a second document",
		"name: &a x\nstart: *a":          "anchors and aliases are not supported",
		"rules: {a: {when: 1}}":          "rules must be a list",
		"otherwise: perhaps":             "otherwise (or the word auto, or nothing) must be a list",
		"name: x\nname: y":               `a scenario has the key "name" twice`,
		"name: {? {a: b} : c}":           "name must be text",
		strings.Repeat("[", 60):          "this is not YAML",
		strings.Repeat("#", strictMax+1): "at most",
	} {
		if got := problems(t, text); !strings.Contains(got, want) {
			t.Errorf("%.60q: got %s, want %s", text, got, want)
		}
	}
}

const strictMax = 1 << 20

func TestVariableLines(t *testing.T) {
	s := mustParse(t, `{rules: [{when: {text: any}, do: [{say: [one, two, three, four]}]}]}`)
	seen := map[string]bool{}
	for seed := range uint64(50) {
		seen[show(s.NewDialogue(seed).Hear(typed("x"), Context{}))] = true
		if a, b := s.NewDialogue(seed).Hear(typed("x"), Context{}), s.NewDialogue(seed).Hear(typed("x"), Context{}); show(a) != show(b) {
			t.Fatalf("seed %d gives two answers", seed)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d of 4 lines were spoken", len(seen))
	}
}

func TestArgumentsTakeTheDeclaredTypes(t *testing.T) {
	s := mustParse(t, `{rules: [{when: {text: '(\w+) (\w+) (\w+)'}, do: [{call: {tool: f, args: {n: "${1}", x: "${2}", b: "${3}", s: "${1}", list: ["${1}"]}}}]}]}`)
	tool := Tool{Name: "f", Parameters: []byte(`{"properties":{"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"},"list":{"type":"array","items":{"type":["null","integer"]}}}}`)}
	want(t, s.NewDialogue(1).Hear(typed("7 nine true"), Context{Tools: []Tool{tool}}),
		"heard 7 nine true", `call f {"b":true,"list":[7],"n":7,"s":"7","x":9}`)
	want(t, s.NewDialogue(1).Hear(typed("7 nine true"), Context{}), "heard 7 nine true", `call f {"b":"true","list":["7"],"n":"7","s":"7","x":"nine"}`)
}

func TestUtteranceTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than a second", time.Second: "one second", 1400 * time.Millisecond: "one second",
		11 * time.Second: "eleven seconds", 20 * time.Second: "twenty seconds", 42 * time.Second: "forty-two seconds", 5 * time.Minute: "300 seconds",
	} {
		if got := inWords(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(string(defaultYAML), "hello")
	f.Add(`{rules: [{when: {text: '(?P<a>x)'}, times: 1, do: [{say: "${a}"}, {call: {tool: t, args: {a: [1, {b: "${0}"}]}}}, {then: auto}]}]}`, "x")
	f.Add("rules: [{when: {utterance: any}, heard: x}]\nstart: nothing\notherwise: [{fault: drop}]", "")
	f.Fuzz(func(t *testing.T, text, said string) {
		s, err := Parse("f", []byte(text))
		if err != nil {
			var e *strict.Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		d := s.NewDialogue(1)
		d.Hear(typed(said), Context{Tools: []Tool{weather}})
		d.Hear(speech(time.Second), Context{})
		d.Results([]Result{{Name: "t", Output: said}}, Context{})
		d.Continue(Context{})
	})
}

// FuzzAuto: the built-in behaviour parses untrusted text, schemas and results.
func FuzzAuto(f *testing.F) {
	f.Add("What is the weather in London and Paris?", string(weather.Parameters), "Always call get_weather.", `{"ok":false,"error":{"type":"X"}}`)
	f.Add(`note "steady" 5 at 10:30 on 2026-01-01`, `{"type":"OBJECT","properties":{"a":{"anyOf":[{"type":"null"},{"type":"integer"}]},"b":{"type":"array"},"c":{"enum":[]}},"required":["a","b","c"]}`, "", `[[[[["x"]]]]]`)
	f.Fuzz(func(t *testing.T, text, params, instructions, output string) {
		c := Context{Tools: []Tool{{Name: "get_weather", Parameters: []byte(params)}}, Instructions: instructions, ToolRequired: true}
		d := Default().NewDialogue(1)
		for _, s := range d.Hear(typed(text), c).Steps {
			if calls, ok := s.(Calls); ok {
				for _, call := range calls.Calls {
					if !strings.HasPrefix(string(call.Args), "{") {
						t.Fatalf("arguments %s", call.Args)
					}
				}
			}
		}
		if turn := d.Results([]Result{{Name: "get_weather", Output: output}}, c); len(turn.Steps) == 0 {
			t.Fatal("a result was met with silence")
		}
	})
}
