package chat

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport/textmodel"
)

// TestHistoryIsValid: for any arguments or name of a model's call, the next request and the next turn have an object
// and a name that providers accept, and an answer with the error.
func TestHistoryIsValid(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	for _, tc := range []struct{ name, args, want, says string }{
		{"look", ``, `{}`, ""},
		{"look", `""`, `{}`, "object"},
		{"look", `null`, `{}`, "object"},
		{"look", `[]`, `{}`, "object"},
		{"look", `[{"name":"x"}]`, `{}`, "object"},
		{"look", `5`, `{}`, "object"},
		{"look", `true`, `{}`, "object"},
		{"look", `{"name":"x"}{"name":"y"}`, `{}`, "more after"},
		{"look", `{"name":"x"`, `{}`, "JSON"},
		{"look", `{'name':'x'}`, `{}`, "JSON"},
		{"look", `{"name":"x","name":"y"}`, `{}`, "twice"},
		{"look", `{"name":1e999}`, `{}`, "1e999"},
		{"look", "{\"name\":\"\xff\"}", `{}`, "UTF-8"},
		{"look", `{"name":"\ud800"}`, `{"name":"` + "\uFFFD" + `"}`, ""},
		{"look", `{"name":"` + strings.Repeat("x", 70<<10) + `"}`, `{}`, "bytes"},
		{"look", deep, `{}`, "deeper"},
		{"look", strings.Repeat("[", 20000), `{}`, "deeper"},
		{"look", ` {"name": "x"} `, ` {"name": "x"} `, ""},
		{"", `{}`, `{}`, "no tool"},
		{"look it up!", `{}`, `{}`, "no tool"},
		{strings.Repeat("ü", 100), `{}`, `{}`, "no tool"},
	} {
		t.Run(fmt.Sprintf("%.20s %.20q", tc.name, tc.args), func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				f.say("Go", callsTools(nth(1), tc.name, tc.args), says("Done."))
				calls := callsOf(t, f.last())
				if len(calls) != 1 || string(calls[0].Args) != tc.want {
					t.Fatalf("the model gets its call again as %.100q", calls)
				}
				answer := f.last().Messages[len(f.last().Messages)-1]
				var env registry.Envelope
				if err := json.Unmarshal([]byte(answer.Text), &env); err != nil || answer.CallID != calls[0].ID {
					t.Fatalf("the answer is %q, %v", answer.Text, err)
				}
				if text := fmt.Sprintf("%+v", env.Error); tc.says != "" && (env.Error == nil || !strings.Contains(answer.Text, tc.says)) {
					t.Errorf("the model gets %s, want it to contain %q", text, tc.says)
				}
				f.say("And?", says("Well."))
				callsOf(t, f.last())
			})
		})
	}
}

// callsOf returns the calls in the messages of a prompt, and checks that a provider accepts each.
func callsOf(t *testing.T, p textmodel.Prompt) (all []textmodel.ToolCall) {
	t.Helper()
	name := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	for _, m := range p.Messages {
		for _, c := range m.Calls {
			var object map[string]any
			if err := json.Unmarshal(c.Args, &object); err != nil || object == nil || !name.MatchString(c.Name) || c.ID == "" {
				t.Errorf("a provider refuses the call %q %q %.100q", c.ID, c.Name, c.Args)
			}
			all = append(all, c)
		}
	}
	return all
}

// TestAClientsToolGetsAnObject: the gateway answers a call of a client's tool whose arguments are not an object; the
// client does not get it.
func TestAClientsToolGetsAnObject(t *testing.T) {
	for _, args := range []string{`""`, `null`, `[]`, `7`, `{}{}`, `{"page":`} {
		t.Run(args, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				sent, err := f.respond(t.Context(), asks(textmodel.Message{Role: textmodel.RoleUser, Text: "Show me Ada"}), callsTools("call_theirs", "open_page", args), says("I cannot."))
				if err != nil {
					t.Fatal(err)
				}
				if handed := of[*protocol.ToolCall](sent); len(handed) != 0 {
					t.Errorf("the client gets %+v", handed[0])
				}
				if calls := callsOf(t, f.last()); len(calls) != 1 {
					t.Errorf("the model gets the calls %+v", calls)
				}
				if answer := f.last().Messages[len(f.last().Messages)-1]; !strings.Contains(answer.Text, "not a JSON object") {
					t.Errorf("the model gets %s", answer.Text)
				}
			})
		})
	}
}
