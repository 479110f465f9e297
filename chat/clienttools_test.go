package chat

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/transport/textmodel"
)

// theirs is a tool of the client's.
var theirs = []textmodel.Tool{{Name: "open_page", Description: "Opens a page.", Parameters: json.RawMessage(`{"type":"object"}`)}}

// asks is a request of a client that keeps its conversation and has tools of its own.
func asks(history ...textmodel.Message) Request {
	req := Request{History: history, Tools: theirs}
	if last := history[len(history)-1]; last.Role == textmodel.RoleUser {
		req.History, req.Message = history[:len(history)-1], last.Text
	}
	return req
}

// TestToolsOfTheClient: in a batch with calls of both sides the gateway's run first, and the client's end the turn.
// In the client's next request the model finds both answers under its own ids. One budget counts all calls.
func TestToolsOfTheClient(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		user := textmodel.Message{Role: textmodel.RoleUser, Text: "Show me Ada"}
		both := callsTools("call_mine", "search", `{"name":"ada"}`, "call_theirs", "open_page", `{"page":"ada"}`)
		sent, err := f.respond(t.Context(), asks(user), callsTools("call_first", "look", `{}`), both)
		if err != nil {
			t.Fatal(err)
		}
		if got := sent.types(); got != "tool.started tool.ended tool.started tool.ended tool.call usage done" || sent.done().Status != protocol.DoneCompleted {
			t.Error(got)
		}
		if diff := cmp.Diff([]string{"look", "search ada"}, f.ran()); diff != "" {
			t.Error(diff)
		}
		if names := f.last().Tools; !slices.ContainsFunc(names, func(tool textmodel.Tool) bool { return tool.Name == "open_page" }) || len(names) < 2 {
			t.Errorf("the model has the tools %+v", names)
		}
		handed := of[*protocol.ToolCall](sent)[0]
		if handed.Name != "open_page" || string(handed.Args) != `{"page":"ada"}` || len(handed.CallID) > 40 {
			t.Errorf("%+v", handed)
		}
		// The client knows only its own call.
		answer := []textmodel.Message{user, {Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: handed.CallID, Name: "open_page", Args: handed.Args}}}, {Role: textmodel.RoleTool, CallID: handed.CallID, Text: "It is open."}}
		if sent, err = f.respond(t.Context(), asks(answer...), says("There she is.")); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range f.last().Messages[1:] {
			line := string(m.Role) + " " + m.CallID
			for _, c := range m.Calls {
				line += c.ID + "=" + c.Name + " "
			}
			if m.Role == textmodel.RoleTool && strings.Contains(m.Text, `"ok":true`) {
				line += " ok"
			} else {
				line += m.Text
			}
			got = append(got, strings.TrimSpace(line))
		}
		want := []string{
			"user Show me Ada", "assistant call_first=look", "tool call_first ok", "assistant call_mine=search call_theirs=open_page", "tool call_mine ok", "tool call_theirsIt is open.",
		}
		if diff := cmp.Diff(want, got); diff != "" || sent.types() != "text.done usage done" {
			t.Errorf("%s %s", sent.types(), diff)
		}
		var record audit.Record
		for _, r := range f.audited() {
			if r.ToolID == "open_page" {
				record = r
			}
		}
		if lines := deliveries(f.audited()); !cmp.Equal(lines, []string{"look yes", "open_page client", "search held"}) {
			t.Errorf("the audit has %q", lines)
		}
		if record.Executor != "client" || record.Delivered || record.NotDelivered != "client" || !strings.Contains(string(record.Budget), `"total":{"used":3`) {
			t.Errorf("%+v %s", record, record.Budget)
		}
	})
}

// TestToolsOfTheClientAreBounded: the gateway answers calls over the budget, over any number of requests, and informs
// the model of arguments that are not an object.
func TestToolsOfTheClientAreBounded(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		history := []textmodel.Message{{Role: textmodel.RoleUser, Text: "Go"}}
		for i := range 10 {
			sent, err := f.respond(t.Context(), asks(history...), callsTools(nth(i), "open_page", `{}`))
			if err != nil {
				t.Fatal(err)
			}
			handed := of[*protocol.ToolCall](sent)
			if len(handed) != 1 {
				t.Fatalf("request %d: %s", i, sent.types())
			}
			history = append(history, textmodel.Message{Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: handed[0].CallID, Name: "open_page", Args: json.RawMessage(`{}`)}}}, textmodel.Message{Role: textmodel.RoleTool, CallID: handed[0].CallID, Text: "ok"})
		}
		sent, err := f.respond(t.Context(), asks(history...), callsTools(nth(10), "open_page", `{}`), says("That is all."))
		if err != nil {
			t.Fatal(err)
		}
		if got := sent.types(); got != "tool.started tool.ended text.done usage done" || !f.last().ToolsOff {
			t.Errorf("%s, tools off %v", got, f.last().ToolsOff)
		}
		sent, err = f.respond(t.Context(), asks(textmodel.Message{Role: textmodel.RoleUser, Text: "Again"}), callsTools("a", "open_page", `{"a`), says("I see."))
		if e := of[*protocol.ToolEnded](sent); err != nil || len(e) != 1 || !strings.Contains(string(e[0].Error), "VALIDATION") {
			t.Errorf("%v %s", err, sent.types())
		}
	})
}

// TestNamesOfTheClientsTools: a client's tool cannot have the name of a gateway's tool, nor a client's history a call
// of one.
func TestNamesOfTheClientsTools(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		calls := func(name string) textmodel.Message {
			return textmodel.Message{Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: "a", Name: name}}}
		}
		for field, req := range map[string]Request{
			"tools[1].function.name":                  {Message: "x", History: []textmodel.Message{}, Tools: append(slices.Clone(theirs), textmodel.Tool{Name: "search"})},
			"tools[0].function.name":                  {Message: "x", History: []textmodel.Message{}, Tools: []textmodel.Tool{{Name: "confirm_action"}}},
			"messages[0].tool_calls[0].function.name": {Message: "x", History: []textmodel.Message{calls("pay"), {Role: textmodel.RoleTool, CallID: "a", Text: "paid"}}},
		} {
			_, err := f.respond(t.Context(), req)
			var wrong *FieldError
			if !errors.As(err, &wrong) || wrong.Field != field || !errors.Is(err, ErrMessage) {
				t.Errorf("%s: %v", field, err)
			}
		}
		// Unknown calls stay as the client has them.
		sent, err := f.respond(t.Context(), asks(textmodel.Message{Role: textmodel.RoleUser, Text: "x"}, textmodel.Message{Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: heldCall(strings.Repeat("A", 26), 0), Name: "open_page"}}}, textmodel.Message{Role: textmodel.RoleTool, CallID: heldCall(strings.Repeat("A", 26), 0), Text: "ok"}), says("Fine."))
		if err != nil || sent.done().Status != protocol.DoneCompleted || len(f.last().Messages) != 4 {
			t.Errorf("%v %+v", err, f.last().Messages)
		}
	})
}

// TestHandOverIsAuditedOnce: calls that could not be passed to the client are audited when a later try of the message
// passes them, and not before.
func TestHandOverIsAuditedOnce(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.kept.before = func(n int) error {
			if n == 1 {
				return errors.New("the store is down")
			}
			return nil
		}
		for try := range 2 {
			steps := []step{callsTools(nth(1), "open_page", `{}`)}
			if try > 0 {
				steps = nil // the model's answer is known
			}
			sent, err := f.respond(t.Context(), asks(textmodel.Message{Role: textmodel.RoleUser, Text: "Show me"}), steps...)
			if err != nil {
				t.Fatal(err)
			}
			if n, audited := len(of[*protocol.ToolCall](sent)), len(f.audited()); n != try || audited != try {
				t.Errorf("try %d: %d calls are handed over, %d audited: %s", try, n, audited, sent.types())
			}
		}
	})
}
