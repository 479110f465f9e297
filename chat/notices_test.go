package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// TestBrokenOff: the part of a broken answer that the user has read stays in the conversation, marked, with the calls
// before it; a repeated message replaces it.
func TestBrokenOff(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		breaks := func(_ context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			delta("It is in the")
			return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Begun: true, Err: errors.New("reset")}
		}
		sent := f.say("Where?", callsTools(nth(1), "look", `{}`), breaks)
		if sent.types() != "tool.started tool.ended error usage done" || sent.done().Status != protocol.DoneFailed {
			t.Error(sent.types())
		}
		e := f.conversation("conv").Entries
		if len(e) != 3 || len(e[1].Calls) != 1 || !e[1].Calls[0].OK || e[2].Text != "It is in the" || !e[2].Broken || e[2].Interrupted {
			t.Fatalf("%+v", e)
		}
		f.say("Go on", says("In the hall."))
		if got := transcript(f.last()); !strings.Contains(got, "assistant: It is in the [the answer broke off here; the user has read so much of it]\nuser: Go on") || !strings.Contains(got, "tool "+nth(1)) {
			t.Error(got)
		}
		f.say("And?", breaks)
		f.say("And?", says("That is all."))
		if e := f.conversation("conv").Entries; len(e) != 7 || e[6].Text != "That is all." || e[5].Text != "And?" {
			t.Errorf("%+v", e)
		}
	})
}

// TestExpiredIsReported: the model learns in the next turn, once, that its question was not answered in time, but
// nothing about an answered one.
func TestExpiredIsReported(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		if _, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked.Token}}, says("As you like.")); err != nil {
			t.Fatal(err)
		}
		f.say("Another", callsTools(nth(7), "pay", `{"name":"Eve"}`), says("May I?"))
		pass(10 * time.Minute)
		f.say("Hello", says("Hello."))
		f.say("And?", says("Nothing."))
		got := transcript(f.last())
		if strings.Count(got, "did not answer in time whether to run pay") != 1 || strings.Index(got, "did not answer in time") > strings.Index(got, "user: Hello") {
			t.Error(got)
		}
	})
}

// TestAToolGetsTheClientsHistory: a tool can pass on a conversation that only its client keeps, without the model's
// instructions; of a stored one it gets nothing.
func TestAToolGetsTheClientsHistory(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		var said []registry.Utterance
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			said = c.Needs.Inviter.Said()
			return registry.Result{Data: "done"}, nil
		}
		req := Request{ConversationID: "none", Message: "Call me", History: []textmodel.Message{
			{Role: textmodel.RoleSystem, Text: "Be brief."}, {Role: textmodel.RoleUser, Text: "I am in Rome."}, {Role: textmodel.RoleAssistant, Text: "Noted."}}}
		if _, err := f.respond(t.Context(), req, callsTools(nth(1), "look", `{}`), says("Speak.")); err != nil {
			t.Fatal(err)
		}
		want := []registry.Utterance{{Text: "I am in Rome."}, {Assistant: true, Text: "Noted."}, {Text: "Call me"}}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Error(diff)
		}
		f.say("Hello", callsTools(nth(2), "look", `{}`), says("Hi."))
		if said != nil {
			t.Errorf("%+v", said)
		}
	})
}
