package scenario

import (
	"fmt"
	"strings"
	"testing"
)

// TestRulesAboutMemory: rules about memory for each kind of input.
func TestRulesAboutMemory(t *testing.T) {
	s := mustParse(t, `
rules:
  - when: {text: colour, remembers: '^user: .*colour is (?P<colour>\w+)', forgot: ['secret', '^system: ']}
    do: [{say: "${colour}, of ${memory}"}]
  - when: {text: colour, remembers: any}
    do: [{say: Something else.}]
  - when: {text: colour}
    do: [{say: Nothing.}]
  - when: {utterance: any, remembers: ['^model: ', '^call: book \{']}
    heard: Aloud.
    do: [{say: "Both."}]
  - when: {tool: book, remembers: '^result: book '}
    do: [{say: "Again: ${memory}"}]
  - when: {tool: book}
    do: [{say: Booked.}]
`)
	blue, red := Memory{"user", "My colour is blue."}, Memory{"user", "My colour is red."}
	for name, tc := range map[string]struct {
		know []Memory
		in   string // "" is speech, "result" a result of book
		want string
	}{
		"nothing":            {nil, "colour?", "say Nothing."},
		"one line":           {[]Memory{blue}, "colour?", "say blue, of user: My colour is blue."},
		"the newest line":    {[]Memory{blue, {"model", "Noted."}, red}, "colour?", "say red, of user: My colour is blue. | model: Noted. | user: My colour is red."},
		"another's line":     {[]Memory{{"model", "My colour is blue."}}, "colour?", "say Something else."},
		"one is not forgot":  {[]Memory{blue, {"model", "It is SECRET."}}, "colour?", "say Something else."},
		"nor is the other":   {[]Memory{blue, {"system", "x"}}, "colour?", "say Something else."},
		"all of a list":      {[]Memory{{"model", "x"}, {"call", "book {}"}}, "", "say Both."},
		"one of a list":      {[]Memory{{"call", "book {}"}}, "", "say I heard you speak"},
		"a result":           {nil, "result", "say Booked."},
		"a result once more": {[]Memory{{"result", "book ok"}}, "result", "say Again: result: book ok"},
	} {
		t.Run(name, func(t *testing.T) {
			d, c := s.NewDialogue(1), Context{Memory: tc.know}
			var turn Turn
			switch tc.in {
			case "":
				turn = d.Hear(Heard{Spoken: true}, c)
			case "result":
				turn = d.Results([]Result{{"book", "ok"}}, c)
			default:
				turn = d.Hear(typed(tc.in), c)
			}
			if got := show(turn); !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestMemoryIsBounded: ${memory} has the newest lines, each cut.
func TestMemoryIsBounded(t *testing.T) {
	var lines []Memory
	for i := range 1000 {
		lines = append(lines, Memory{"user", fmt.Sprint("line ", i)})
	}
	lines = append(lines, Memory{"model", strings.Repeat("word ", 1000)})
	text := memoryText(lines)
	if len(text) > maxMemory || len(text) < maxMemory/2 || !strings.Contains(text, "user: line 999 | model: word") || strings.Contains(text, "line 1 ") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestNoGreetingInTheMiddle: a model that remembers its own words does not greet.
func TestNoGreetingInTheMiddle(t *testing.T) {
	s := mustParse(t, `{start: [{say: Welcome.}], otherwise: auto}`)
	for want, know := range map[string][]Memory{
		"say Welcome.": {{"user", "Hi."}},
		"say There is nothing new to answer. I said: Hello Ada.": {{"user", "Hi."}, {"model", "Hello Ada."}, {"user", "Hm."}},
	} {
		if got := show(s.NewDialogue(1).Continue(Context{Memory: know})); !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %s", know, got, want)
		}
	}
}

func TestInvalidMemoryConditions(t *testing.T) {
	got := problems(t, `
rules:
  - when: {text: x, remembers: '('}
    do: auto
  - when: {text: x, forgot: []}
    do: auto
  - when: {prompt: x, remembers: y}
    do: [{say: z}]
  - when: {remembers: y}
    do: auto
`)
	for _, want := range []string{
		"3: remembers is not a valid regular expression", "5: forgot is an empty list",
		"7: remembers has no meaning with prompt", "9: when needs exactly one of utterance, text, tool and prompt",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing: %s in\n%s", want, got)
		}
	}
}
