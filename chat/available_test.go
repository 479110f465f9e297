package chat

import (
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport/textmodel"
)

// TestAvailability: the tools of a turn in text, and the answers to calls, follow the agent, the features and the
// time.
func TestAvailability(t *testing.T) {
	on := map[string]bool{}
	f := newFixture(t, fixtureSetting{feature: func(_, name string) bool { return on[name] }}) // long after the tool's minute
	turn := func(id string, want map[string]registry.ErrorType) {
		t.Helper()
		var made []string
		for _, tool := range []string{"timely", "beta", "elsewhere"} {
			made = append(made, "id-"+tool, tool, `{}`)
		}
		if _, err := f.respond(t.Context(), Request{ConversationID: id, User: user.Must("ada"), Message: "Go"}, callsTools(made...), says("Done.")); err != nil {
			t.Fatal(err)
		}
		p := f.model.prompts[len(f.model.prompts)-1]
		for i, env := range answers(t, f.last()) {
			tool := made[3*i+1]
			got := registry.ErrorType("")
			if env.Error != nil {
				got = env.Error.Type
			}
			if got != want[tool] {
				t.Errorf("%s: %s was answered %q, want %q", id, tool, got, want[tool])
			}
			if offered := slices.ContainsFunc(p.Tools, func(tt textmodel.Tool) bool { return tt.Name == tool }); offered != (want[tool] == "") {
				t.Errorf("%s: %s is offered: %v", id, tool, offered)
			}
		}
	}
	turn("c-1", map[string]registry.ErrorType{"timely": registry.ErrorUnavailable, "beta": registry.ErrorNotFound, "elsewhere": registry.ErrorNotFound})
	on["beta"] = true
	turn("c-2", map[string]registry.ErrorType{"timely": registry.ErrorUnavailable, "elsewhere": registry.ErrorNotFound})
}

// TestApprovedAfterTheWindow: a call approved after the tool's window is answered as unavailable, and the model is
// informed.
func TestApprovedAfterTheWindow(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Go", callsTools(nth(1), "timely", `{"name":"Bob"}`), says("Please approve it."))
		asked := of[*protocol.ConfirmationRequest](sent)
		if len(asked) != 1 {
			t.Fatalf("got %s", sent.types())
		}
		<-time.After(time.Minute)
		sent, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked[0].Token, Approved: true}}, says("It is too late."))
		if err != nil {
			t.Fatal(err)
		}
		if got := sent.errorTypes(); !slices.Equal(got, []string{string(registry.ErrorUnavailable)}) || len(f.ran()) != 0 {
			t.Errorf("the call ended %v, and %v has run", got, f.ran())
		}
		if got := transcript(f.last()); !strings.Contains(got, "The user approved timely") || !strings.Contains(got, `"UNAVAILABLE"`) {
			t.Error(got)
		}
	})
}
