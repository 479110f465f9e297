package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/audit"
	"voicegw/internal/user"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/storetest"
	"voicegw/transport/textmodel"
)

// proposed lets the model propose a payment and returns the question to the user.
func (f *fixture) proposed() *protocol.ConfirmationRequest {
	f.t.Helper()
	sent := f.say("Pay Bob", callsTools(nth(1), "pay", `{"name":"Bob"}`), says("Please approve it."))
	if got := sent.types(); got != "tool.started confirmation.request tool.ended text.done usage done" {
		f.t.Fatal(got)
	}
	return of[*protocol.ConfirmationRequest](sent)[0]
}

// TestApproved: an approved call runs once as it was shown, in its own turn, and the model is informed.
func TestApproved(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		if asked.Tool != "pay" || asked.Preview != "Do it for Bob" || string(asked.Args) != `{"name":"Bob","top_k":5}` || time.Until(asked.ExpiresAt.Time) != 5*time.Minute {
			t.Errorf("%+v", asked)
		}
		if env := answers(t, f.last())[0]; env.Error.Type != registry.ErrorConfirmationRequired || env.Error.ConfirmationRequest.Token != asked.Token {
			t.Errorf("the model got %s", env.Encode())
		}
		if len(f.ran()) != 0 {
			t.Fatal("it ran before it was approved")
		}
		sent, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked.Token, Approved: true}}, says("It is paid."))
		if err != nil {
			t.Fatal(err)
		}
		if got := sent.types(); got != "confirmation.ended tool.started tool.ended text.done usage done" {
			t.Error(got)
		}
		if e := of[*protocol.ConfirmationEnded](sent)[0]; e.Outcome != "approved" || e.Token != asked.Token || e.Tool != "pay" || e.Turn != 2 {
			t.Errorf("%+v", e)
		}
		if diff := cmp.Diff([]string{"pay Bob"}, f.ran()); diff != "" {
			t.Error(diff)
		}
		got := transcript(f.last())
		f.say("And then?", says("That was all."))
		f.say("Really?", says("Yes."))
		if later := transcript(f.last()); !strings.Contains(later, "[called pay: asked for approval]") || !strings.Contains(later, "The user approved pay") {
			t.Errorf("after two more turns:\n%s", later)
		}
		if !strings.Contains(got, "user: [own] The user approved pay") || !strings.Contains(got, `"ok":true`) {
			t.Error(got)
		}
		r := f.audited()[1]
		if r.Confirmation != "approved" || r.ConfirmedBy != "client" || r.Reference == "" || !r.OK || r.TurnID != 2 || !strings.Contains(string(r.Budget), `"total":{"used":2,`) || strings.Contains(r.IdempotencyKey, asked.Token) {
			t.Errorf("%+v", r)
		}
		if got := f.questions.Settled(); len(got) != 1 || got[0] != r.Reference {
			t.Errorf("the settled approvals are %v", got)
		}
		// Once.
		again, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked.Token, Approved: true}})
		if !errors.Is(err, store.ErrUsed) || len(again.msgs) != 0 || len(f.ran()) != 1 {
			t.Errorf("%v, ran %v", err, f.ran())
		}
	})
}

// TestApprovedCallHasOneID: every message of an approved call has the id of its tool.started, so that a client can
// assign it.
func TestApprovedCallHasOneID(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			c.Needs.Progress.Tell("half of it", 0.5)
			return registry.Result{Data: "paid"}, c.Needs.Messenger.Send("payment.sent", "now")
		}
		sent, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked.Token, Approved: true}}, says("It is paid."))
		if err != nil {
			t.Fatal(err)
		}
		id := of[*protocol.ToolStarted](sent)[0].CallID
		progress, messages, ended := of[*protocol.ToolProgress](sent), of[*protocol.ToolMessage](sent), of[*protocol.ToolEnded](sent)
		if len(progress) != 1 || len(messages) != 1 || len(ended) != 1 || id == "" {
			t.Fatalf("it got %s", sent.types())
		}
		if progress[0].CallID != id || messages[0].CallID != id || ended[0].CallID != id {
			t.Errorf("started %s, progress %s, message %s, ended %s", id, progress[0].CallID, messages[0].CallID, ended[0].CallID)
		}
	})
}

// TestAnsweredAfterASwitch: a proposed call runs when it is approved, even if the conversation has switched to a
// persona without the tool; the audit names the persona that asked.
func TestAnsweredAfterASwitch(t *testing.T) {
	for _, approved := range []bool{true, false} {
		billing := &Persona{Name: "billing", Version: "b1", Instructions: "You are billing. ", Tools: []string{"look"}}
		bubble(t, fixtureSetting{options: Options{
			Personas: func(name string) *Persona { return map[string]*Persona{"billing": billing}[name] },
			Persona:  Persona{Name: "default", Version: "d1", SwitchTo: []registry.SwitchTarget{{ID: "billing", Name: "Billing"}}},
		}}, func(t *testing.T, f *fixture) {
			asked := f.proposed()
			f.say("My bill is wrong", callsTools(nth(2), spec.AgentSwitch, `{"agent":"billing","reason":"a bill"}`), says("I see it."))
			if !strings.Contains(f.last().Messages[0].Text, "You are billing.") {
				t.Fatalf("the model gets %q", f.last().Messages[0].Text)
			}
			if _, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked.Token, Approved: approved}}, says("All right.")); err != nil {
				t.Fatal(err)
			}
			if want := map[bool]string{true: "pay Bob", false: ""}[approved]; strings.Join(f.ran(), " ") != want {
				t.Errorf("ran %v, want %q", f.ran(), want)
			}
			lines := f.audited()
			if r := lines[len(lines)-1]; r.ToolID != "pay" || r.OK != approved || r.Agent != "default" || r.AgentVersion != "d1" || r.ToolVersion == "" {
				t.Errorf("approved %t: the audit has %+v", approved, r)
			}
		})
	}
}

// TestDenied: nothing runs, the model is informed, and the audit has it.
func TestDenied(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		sent, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked.Token}}, says("As you like."))
		if err != nil {
			t.Fatal(err)
		}
		if got := sent.types(); got != "confirmation.ended text.done usage done" || of[*protocol.ConfirmationEnded](sent)[0].Outcome != "denied" {
			t.Error(got)
		}
		if len(f.ran()) != 0 || !strings.Contains(transcript(f.last()), "The user declined pay") {
			t.Errorf("ran %v", f.ran())
		}
		r := f.audited()[1]
		if r.Event != audit.EventConfirmation || r.Confirmation != "denied" || r.ConfirmedBy != "client" || r.Delivered || r.SessionID != "chat-conv" {
			t.Errorf("%+v", r)
		}
	})
}

// TestNotAnswerable: an answer that is late, or of another conversation or user, or to no question, is refused
// without a message.
func TestNotAnswerable(t *testing.T) {
	bubble(t, fixtureSetting{execute: execute.Options{Life: time.Minute}}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		answer := func(req Request, token string) error {
			t.Helper()
			req.Confirmation = &Confirmation{Token: token, Approved: true}
			sent, err := f.respond(t.Context(), req)
			if len(sent.msgs) != 0 {
				t.Errorf("it got %s", sent.types())
			}
			if errors.Is(err, ErrStore) {
				return ErrStore // not the fault of the answer
			}
			return err
		}
		if err := answer(Request{}, "cf_nothing"); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("unknown: %v", err)
		}
		if err := answer(Request{ConversationID: "other"}, asked.Token); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("another conversation's: %v", err)
		}
		if err := answer(Request{User: user.Must("eve")}, asked.Token); !errors.Is(err, ErrUnknown) {
			t.Errorf("another user: %v", err)
		}
		pass(time.Minute)
		if err := answer(Request{}, asked.Token); !errors.Is(err, store.ErrExpired) {
			t.Errorf("late: %v", err)
		}
		if len(f.ran()) != 0 {
			t.Errorf("ran %v", f.ran())
		}
		f.questions.Before = func(context.Context, storetest.Op, string) error { return store.ErrUnavailable }
		if err := answer(Request{}, asked.Token); !errors.Is(err, ErrStore) {
			t.Errorf("the store is down: %v", err)
		}
	})
}

// TestNotAsked: if a question cannot be recorded, it is not asked, and nothing runs.
func TestNotAsked(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.questions.Before = func(context.Context, storetest.Op, string) error { return store.ErrUnavailable }
		sent := f.say("Pay", callsTools(nth(1), "pay", `{"name":"Bob"}`), says("It does not work."))
		if got := sent.types(); got != "tool.started tool.ended text.done usage done" || sent.errorTypes()[0] != "TRANSIENT" || len(f.ran()) != 0 {
			t.Errorf("%s %v", got, sent.errorTypes())
		}
	})
}

// TestRefusedByCheck: the tool's own check answers the model, which may correct itself; the user is only asked about
// the corrected call.
func TestRefusedByCheck(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.check = func(c toolCall) error {
			if c.Args.Name == "unknown" {
				return registry.Errorf(registry.ErrorValidation, "Unknown cannot be paid.")
			}
			return nil
		}
		sent := f.say("Pay", callsTools(nth(1), "pay", `{"name":"unknown"}`), callsTools(nth(2), "pay", `{"name":"Bob"}`), says("Please approve it."))
		if got := sent.types(); got != "tool.started tool.ended tool.started confirmation.request tool.ended text.done usage done" {
			t.Error(got)
		}
		if diff := cmp.Diff([]string{"VALIDATION", "CONFIRMATION_REQUIRED"}, sent.errorTypes()); diff != "" || len(f.ran()) != 0 {
			t.Errorf("%s, ran %v", diff, f.ran())
		}
	})
}

// TestOneQuestion: a model that calls twice asks once.
func TestOneQuestion(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Pay", callsTools(nth(1), "pay", `{"name":"Bob"}`, nth(2), "pay", `{"name":"Bob"}`), callsTools(nth(3), "pay", `{"name":"Bob"}`), says("Please approve it."))
		if n := len(of[*protocol.ConfirmationRequest](sent)); n != 1 || len(f.questions.All()) != 1 {
			t.Errorf("%d questions", n)
		}
		if diff := cmp.Diff([]string{"CONFIRMATION_REQUIRED", "CONFIRMATION_REQUIRED", "CONFIRMATION_REQUIRED"}, sent.errorTypes()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestApprovedAndGone: an approved call runs even if the client disconnects, and its outcome is in the conversation.
func TestApprovedAndGone(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		ctx, leave := context.WithCancel(t.Context())
		f.do = func(ctx context.Context, _ toolCall) (registry.Result, error) {
			leave()
			pass(3 * time.Second)
			return registry.Result{Data: "paid"}, ctx.Err()
		}
		if _, err := f.respond(ctx, Request{Confirmation: &Confirmation{Token: asked.Token, Approved: true}},
			func(ctx context.Context, _ textmodel.Prompt, _ func(string)) (textmodel.Reply, error) {
				return textmodel.Reply{}, ctx.Err()
			}); err != nil {
			t.Fatal(err)
		}
		if e := f.ledger.Entries(); len(e) != 1 || e[0].State != store.Done {
			t.Errorf("%+v", e)
		}
		c := f.conversation("conv")
		if last := c.Entries[len(c.Entries)-1]; !strings.Contains(last.Text, "The user approved pay") || !strings.Contains(last.Text, `"paid"`) {
			t.Errorf("%+v", last)
		}
	})
}

// TestOneQuestionOverTurns: while a question waits, the same call in a later turn asks no second one; once the first
// was answered or has expired, it does.
func TestOneQuestionOverTurns(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, f *fixture, token string){
		"denied": func(t *testing.T, f *fixture, token string) {
			if _, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: token}}, says("All right.")); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(*testing.T, *fixture, string) { <-time.After(6 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				asked := f.proposed()
				reference := f.questions.All()[0].Reference
				sent := f.say("Pay Bob, I said", callsTools(nth(2), "pay", `{"name":"Bob"}`), says("Please approve it."))
				if got := sent.types(); got != "tool.started tool.ended text.done usage done" {
					t.Fatal(got)
				}
				earlier := answers(t, f.last())
				if env := earlier[1]; env.Error.ConfirmationRequest.Preview != asked.Preview || !env.Meta.CacheHit || env.Meta.OriginalTurn != 1 {
					t.Errorf("the model got %s", env.Encode())
				}
				for _, env := range earlier { // both are from the stored history
					if q := env.Error.ConfirmationRequest; q.Token != "" || string(env.Error.Details) != `{"reference":"`+reference+`"}` {
						t.Errorf("the model got %s, about the question %s", env.Encode(), reference)
					}
				}
				other := f.say("And Eve", callsTools(nth(3), "pay", `{"name":"Eve"}`), says("Please approve it."))
				if n := len(of[*protocol.ConfirmationRequest](other)); n != 1 {
					t.Errorf("%d questions about another payee", n)
				}
				end(t, f, asked.Token)
				again := f.say("Pay Bob now", callsTools(nth(4), "pay", `{"name":"Bob"}`), says("Please approve it."))
				if n := len(of[*protocol.ConfirmationRequest](again)); n != 1 {
					t.Errorf("%d questions after the first ended", n)
				}
			})
		})
	}
}

// TestConversationKeepsNoToken: the conversation stores a question, its reference and its name, but nothing that
// answers it.
func TestConversationKeepsNoToken(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		kept := f.conversation("conv")
		raw, err := json.Marshal(kept)
		if err != nil || strings.Contains(string(raw), asked.Token) || strings.Contains(string(raw), `"token"`) {
			t.Errorf("%v; the conversation has %s", err, raw)
		}
		call := kept.Entries[1].Calls[0]
		if call.Question != store.QuestionName(asked.Token) || !strings.Contains(string(call.Envelope), f.questions.All()[0].Reference) {
			t.Errorf("%+v", call)
		}
		for _, r := range f.audited() {
			if line, err := json.Marshal(r); err != nil || strings.Contains(string(line), asked.Token) {
				t.Errorf("%v; the audit has %s", err, line)
			}
		}
	})
}
