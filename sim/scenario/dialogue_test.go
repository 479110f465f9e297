package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// show formats a turn, one step per line.
func show(t Turn) string {
	var b strings.Builder
	if t.Heard != "" {
		fmt.Fprintf(&b, "heard %s\n", t.Heard)
	}
	for _, s := range t.Steps {
		switch x := s.(type) {
		case Say:
			if x.Text == "" {
				fmt.Fprintf(&b, "silence %v\n", x.Silence)
			} else {
				fmt.Fprintf(&b, "say %s\n", x.Text)
			}
		case Calls:
			for _, c := range x.Calls {
				fmt.Fprintf(&b, "call %s %s", c.Name, c.Args)
				if c.ID != "" {
					fmt.Fprintf(&b, " id=%s", c.ID)
				}
				if c.WithoutID || c.Repeat > 0 || c.Late > 0 {
					fmt.Fprintf(&b, " without=%v repeat=%d late=%v", c.WithoutID, c.Repeat, c.Late)
				}
				b.WriteByte('\n')
			}
		case Wait:
			fmt.Fprintf(&b, "wait %v\n", x.For)
		case Fault:
			fmt.Fprintf(&b, "fault %s %v\n", x.Kind, x.For)
		case End:
			fmt.Fprintf(&b, "end %d %s\n", x.Code, x.Reason)
		}
	}
	return b.String()
}

func want(t *testing.T, got Turn, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(lines, "\n")+"\n", show(got)); diff != "" {
		t.Errorf("turn (-want +got):\n%s", diff)
	}
}

func mustParse(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var weather = Tool{Name: "get_weather", Description: "Look up the weather for a city.",
	Parameters: json.RawMessage(`{"additionalProperties":false,"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}`)}

func typed(s string) Heard { return Heard{Text: s} }

func speech(d time.Duration) Heard { return Heard{Spoken: true, Duration: d} }

func TestScriptedConversation(t *testing.T) {
	d := mustParse(t, `
name: weather
rules:
  - when: {utterance: 1}
    heard: What is the weather in Paris?
  - when: {utterance: 2}
    heard: Thanks
    do:
      - say: You spoke for ${seconds} seconds, that is ${duration}.
      - wait: 200
      - silence: 1s
      - end: {code: 4001, reason: enough}
  - when: {text: 'weather in (?P<city>\w+)'}
    do:
      - say: One moment.
      - call: {tool: get_weather, args: {city: "${city}", days: 2, deep: [true, null, "${1}"]}, without_id: true, repeat: 1, late: 2s}
      - wait: 50ms
      - then:
          - say: In ${city} it is ${result.sky}. ${tool} said so.
      - on_error:
          - say: "It failed with ${error}."
          - fault: {do: close, code: 1011}
`).NewDialogue(1)
	want(t, d.Hear(speech(2*time.Second), Context{}),
		"heard What is the weather in Paris?", "say One moment.",
		`call get_weather {"city":"Paris","days":2,"deep":[true,null,"Paris"]} without=true repeat=1 late=2s`, "wait 50ms")
	want(t, d.Results([]Result{{Name: "get_weather", Output: `{"sky":"clear"}`}}, Context{}), "say In Paris it is clear. get_weather said so.")
	want(t, d.Hear(speech(2340*time.Millisecond), Context{}),
		"heard Thanks", "say You spoke for 2.3 seconds, that is two seconds.", "wait 200ms", "silence 1s", "end 4001 enough")
	d.Hear(typed("WEATHER in Rome"), Context{})
	want(t, d.Results([]Result{{Name: "x", Output: "fine"}, {Name: "get_weather", Output: `{"ok":false,"error":{"type":"AUTH"}}`}}, Context{}),
		"say It failed with AUTH.", "fault close 0s")
	want(t, d.Hear(speech(11*time.Second), Context{}), "heard (speech, 11.0 seconds)",
		"say I heard you speak for eleven seconds. I am a simulated model, so I do not know the words, but I can hear, speak, and be interrupted.")
}

func TestRulesForResultsAndLimits(t *testing.T) {
	d := mustParse(t, `
rules:
  - {when: {text: any, declared: kb}, do: [{call: kb}]}
  - {when: {text: 'secret'}, times: 1, do: [{say: once}]}
  - {when: {text: any}, do: nothing}
  - {when: {tool: kb, ok: true, output: 'n=(\d+)'}, do: [{say: "Found ${1}."}]}
  - {when: {tool: any, error: RATE_LIMIT}, do: [{say: Slow down.}, end]}
`).NewDialogue(1)
	kb := Context{Tools: []Tool{{Name: "kb"}}}
	want(t, d.Hear(typed("hi"), kb), "heard hi", "call kb {}")
	want(t, d.Results([]Result{{Name: "kb", Output: "n=42"}}, kb), "say Found 42.")
	want(t, d.Results([]Result{{Name: "other", Output: `{"error":"RATE_LIMIT"}`}}, kb), "say Slow down.", "end 1000 ")
	want(t, d.Results([]Result{{Name: "kb", Output: "nothing"}}, kb), "say Nothing.")
	want(t, d.Hear(typed("secret"), Context{}), "heard secret", "say once")
	want(t, d.Hear(typed("secret"), Context{}), "heard secret") // used up; the next rule has no words
}

// TestRemembered: a result's value is available in later turns; forks change nothing.
func TestRemembered(t *testing.T) {
	d := mustParse(t, `
rules:
  - when: {text: 'ask (?P<who>\w+)'}
    do:
      - remember: {asked: "${who}", before: "${asked}"}
      - call: {tool: pay}
      - then:
          - remember: {token: "${result.error.token}"}
          - say: Shall I, ${asked}?
  - when: {text: yes}
    do:
      - call: {tool: confirm, args: {token: "${token}", for: "${asked} after ${before}"}, id: "id-${token}"}
`).NewDialogue(1)
	want(t, d.Hear(typed("yes"), Context{}), "heard yes", `call confirm {"for":" after ","token":""} id=id-`)
	d.Hear(typed("ask ada"), Context{})
	want(t, d.Results([]Result{{Name: "pay", Output: `{"ok":false,"error":{"type":"X","token":"t1"}}`}}, Context{}), "say Shall I, ada?")
	d.Fork().Hear(typed("ask eve"), Context{})
	want(t, d.Hear(typed("yes"), Context{}), "heard yes", `call confirm {"for":"ada after ","token":"t1"} id=id-t1`)
	d.Hear(typed("ask bob"), Context{})
	want(t, d.Results([]Result{{Name: "pay", Output: `{"ok":false,"error":{"token":"t2"}}`}}, Context{}), "say Shall I, bob?")
	want(t, d.Hear(typed("yes"), Context{}), "heard yes", `call confirm {"for":"bob after ada","token":"t2"} id=id-t2`)
}

func TestAsideChangesNothing(t *testing.T) {
	s := mustParse(t, `{rules: [{when: {utterance: 1}, times: 1, do: [{say: first}]}, {when: {text: x}, times: 1, do: [{call: a}, {then: [{say: done}]}]}]}`)
	d := s.NewDialogue(1)
	d.Hear(typed("x"), Context{})
	for range 3 {
		want(t, d.Fork().Hear(speech(time.Second), Context{}), "heard (speech, 1.0 seconds)", "say first")
	}
	if got := d.Transcript(speech(time.Second)); got != "(speech, 1.0 seconds)" {
		t.Errorf("transcript %q", got)
	}
	want(t, d.Results([]Result{{Name: "a"}}, Context{}), "say done")
	want(t, d.Hear(speech(time.Second), Context{}), "heard (speech, 1.0 seconds)", "say first")
}

func TestAutoPicksAToolAndFillsItsArguments(t *testing.T) {
	tool := func(name, desc, props string, required string) Tool {
		return Tool{Name: name, Description: desc, Parameters: json.RawMessage(`{"type":"object","properties":` + props + `,"required":` + required + `}`)}
	}
	reading := tool("record_reading", "Store the supplied sensor value.", `{"zqx_measurement":{"type":"INTEGER"},"qbf_note":{"nullable":true,"type":"STRING"}}`, `["zqx_measurement"]`)
	event := tool("calendar_create_event", "Create an event in the calendar.",
		`{"title":{"type":"string"},"date":{"type":"string","format":"date"},"kind":{"type":"string","enum":["work","private"]},"guests":{"type":"array","items":{"type":"string","format":"email"}},"remind":{"type":"boolean"},"hours":{"type":"number"}}`,
		`["title","date","kind","remind"]`)
	tools := []Tool{reading, event, weather}
	for _, c := range []struct{ text, want string }{
		{"What is the weather in London?", `call get_weather {"city":"London"}`},
		{"what's the weather like in san francisco?", `call get_weather {"city":"san francisco"}`},
		{`Please record a reading of 5 with the note "steady".`, `call record_reading {"qbf_note":"steady","zqx_measurement":5}`},
		{"Record a reading of seven", `call record_reading {"zqx_measurement":7}`},
		{`Create a calendar event "Lunch" on 2026-03-04 for 1.5 hours, private, and remind me`,
			`call calendar_create_event {"date":"2026-03-04","hours":1.5,"kind":"private","remind":true,"title":"Lunch"}`},
		{"How is the weather in Paris, in Berlin and in New York?", "call get_weather {\"city\":\"Paris\"}\ncall get_weather {\"city\":\"Berlin\"}\ncall get_weather {\"city\":\"New York\"}"},
		{"Hello", "say Hello! What can I do for you?"},
		{"Say a short greeting.", "say Hello there!"},
		{"Please say: the fox jumps", "say The fox jumps."},
		{"Hello, my name is Marcelo.", "say Hello, Marcelo! Nice to meet you. How can I help you today?"},
	} {
		want(t, Default().NewDialogue(1).Hear(typed(c.text), Context{Tools: tools}), "heard "+c.text, c.want)
	}
}

func TestToolChoice(t *testing.T) {
	d := Default().NewDialogue(1)
	tools := []Tool{weather}
	ask := typed("What is the weather in London?")
	if got := show(d.Hear(ask, Context{Tools: tools, ToolsOff: true})); strings.Contains(got, "call") || !strings.Contains(got, "say") {
		t.Errorf("tools off: %s", got)
	}
	want(t, d.Hear(typed("Hello"), Context{Tools: tools, ToolRequired: true}), "heard Hello", `call get_weather {"city":"Hello"}`)
	want(t, d.Hear(typed("Hello"), Context{Tools: tools, ToolNamed: "get_weather"}), "heard Hello", `call get_weather {"city":"Hello"}`)
	want(t, d.Hear(ask, Context{Tools: tools, Preamble: true}), "heard "+ask.Text, "say I'll check that for you.", `call get_weather {"city":"London"}`)
	told := Context{Tools: tools, Instructions: "Always call get_weather for a weather question."}
	want(t, d.Hear(speech(2*time.Second), told), "heard (speech, 2.0 seconds)", `call get_weather {"city":"London"}`)
	off := mustParse(t, `{rules: [{when: {text: any}, do: [{call: a}, {then: [{say: never}]}]}]}`).NewDialogue(1)
	want(t, off.Hear(typed("x"), Context{ToolsOff: true}), "heard x", "say I may not use my tools for this, so that is all I can say.")
}

func TestResultsAreSpoken(t *testing.T) {
	for output, spoken := range map[string]string{
		"It is foggy and 12 degrees in London.":                                          "It is foggy and 12 degrees in London.",
		`{"output":"sunny"}`:                                                             "Sunny.",
		`{"temperature":12,"skyState":"clear","id":"x"}`:                                 "Sky state clear, temperature 12.",
		`{"ok":true,"data":{"results":[{"title":"A"},{"title":"B"}]},"meta":{}}`:         "A, B.",
		`{"ok":true,"data":{"results":[]},"meta":{}}`:                                    "Nothing.",
		`{"ok":false,"error":{"type":"NOT_FOUND","message":"There is no tool named x"}}`: "That did not work: There is no tool named x.",
		`{"error":"TRANSIENT"}`:                                                          "That did not work: Transient.",
		`["a","b","c","d","e"]`:                                                          "A, b, c, and two more.",
		"":                                                                               "Done.",
		`{"data":null}`:                                                                  "Done.",
	} {
		want(t, Default().NewDialogue(1).Results([]Result{{Name: "x", Output: output}}, Context{}), "say "+spoken)
	}
	if got := speakResult("x", strings.Repeat("word ", 500)); len(got) > maxSpokenResult+10 {
		t.Errorf("%d bytes are spoken", len(got))
	}
}

func TestContinue(t *testing.T) {
	d := Default().NewDialogue(1)
	want(t, d.Continue(Context{}), "say Hello! I am a simulated voice model. Say something, or type a question.")
	d.Hear(typed("Thank you"), Context{})
	want(t, d.Continue(Context{}), "say There is nothing new to answer. I said: You are welcome.")
}

// TestDefaultAlwaysAnswers: the built-in scenario gives a spoken answer to every input.
func TestDefaultAlwaysAnswers(t *testing.T) {
	full := Context{Tools: []Tool{{Name: "kb_search"}, {Name: "kb_get"}, {Name: "end_voice_session"}}}
	for _, c := range []Context{{}, full} {
		d := Default().NewDialogue(7)
		for i := range 8 {
			turn := d.Hear(speech(time.Duration(i)*700*time.Millisecond), c)
			for len(turn.Steps) > 0 {
				if _, calls := turn.Steps[len(turn.Steps)-1].(Calls); !calls {
					break
				}
				turn = d.Results([]Result{{Name: "kb_search", Output: "Open from 9 to 5."}}, c)
			}
			if got := show(turn); !strings.Contains(got, "say ") {
				t.Errorf("utterance %d: %q", i+1, got)
			}
		}
		for _, text := range []string{"tell me a story", "count to ten", "think about it", "goodbye", "?", "12", "Ünïcödé…"} {
			if got := show(d.Hear(typed(text), c)); !strings.Contains(got, "say ") && !strings.Contains(got, "call ") {
				t.Errorf("%q: %q", text, got)
			}
		}
	}
}

// TestClone: a clone makes the same choices independently; New has no memory.
func TestClone(t *testing.T) {
	s := mustParse(t, `
rules:
  - when: {text: keep (\w+)}
    do: [{remember: {word: "${1}"}}, {say: Kept.}]
  - when: {text: word}
    do: [{say: "It is ${word}."}]
  - when: {text: any}
    do: [{say: [one, two, three, four, five, six, seven, eight]}]
`)
	ask := func(d *Dialogue, text string) string { return show(d.Hear(typed(text), Context{})) }
	for seed := range uint64(20) {
		d := s.NewDialogue(seed)
		ask(d, "keep blue")
		ask(d, "x")
		same, later := d.Clone(), d.Clone()
		ask(d, "keep red")
		if a, b := ask(d, "x"), func() string { ask(same, "keep red"); return ask(same, "x") }(); a != b {
			t.Fatalf("seed %d: the clone answers %s, the dialogue %s", seed, b, a)
		}
		if got := ask(later, "word"); !strings.Contains(got, "It is blue.") {
			t.Fatalf("the clone has later input: %s", got)
		}
		if got := ask(d.New(), "word"); !strings.Contains(got, "It is .") {
			t.Fatalf("another conversation has this one's input: %s", got)
		}
	}
}
