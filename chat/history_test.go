package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/prompts"
	"voicegw/transport/textmodel"
)

// TestHistory: earlier text and speech come before the message; calls are complete for two turns, and summarised
// afterwards.
func TestHistory(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.say("Who is Ada?", callsTools(nth(1), "search", `{"name":"ada"}`, nth(2), "none", `{}`), says("A mathematician."))
		f.kept.append(t, "conv",
			conversation.Entry{Side: conversation.SideVoice, Role: conversation.RoleUser, Text: "Tell me more", Turn: 2},
			conversation.Entry{Side: conversation.SideVoice, Role: conversation.RoleAssistant, Text: "She wrote the", Turn: 2, Interrupted: true,
				Calls: []conversation.Call{{ID: "v1", Tool: "get", OK: true}}},
			conversation.Entry{Side: conversation.SideVoice, Role: conversation.RoleContext, Text: "The page shows her notes."})
		f.say("And then?", says("She died."))
		want := strings.Join([]string{
			"user: Who is Ada?",
			"assistant:  <" + nth(1) + ` search {"name":"ada"}> <` + nth(2) + " none {}>",
			"tool " + nth(1), "tool " + nth(2),
			"assistant: A mathematician.",
			"user: (by voice) Tell me more",
			"assistant: (by voice) She wrote the [the user interrupted here] [called get: ok]",
			"user: [own] " + prompts.PageContext("The page shows her notes."),
			"user: And then?",
		}, "\n")
		if diff := cmp.Diff(want, transcript(f.last())); diff != "" {
			t.Error(diff)
		}
		f.say("Thanks", says("You are welcome."))
		if got := transcript(f.last()); !strings.Contains(got, "assistant: [called search: ok, none: failed]") || strings.Contains(got, "tool ") {
			t.Errorf("after two more turns:\n%s", got)
		}
	})
}

// TestHistoryWithoutEnvelopes: calls whose answers were too long to be stored, or invalid, are summarised.
func TestHistoryWithoutEnvelopes(t *testing.T) {
	for name, tc := range map[string]struct{ args, want string }{
		"long":     {`{"name":"` + strings.Repeat("x", maxKept) + `"}`, "assistant: [called look: ok]"},
		"not JSON": {`{"name":`, "assistant: [called look: failed]"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				f.say("Go", callsTools(nth(1), "look", tc.args), says("Done."))
				f.say("And?", says("Well."))
				if got := transcript(f.last()); !strings.Contains(got, tc.want) {
					t.Error(got)
				}
				if c := f.conversation("conv").Entries[1].Calls[0]; c.Envelope != nil || c.Args != nil {
					t.Errorf("%+v", c)
				}
			})
		})
	}
}

// TestHistoryIsBounded: the oldest entries are omitted, calls with their answers, and summarised; the prompt never
// exceeds its limit.
func TestHistoryIsBounded(t *testing.T) {
	const most = maxHistory
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		for i := range 12 {
			f.say(fmt.Sprintf("Question %d %s", i, strings.Repeat("x", most/10)), callsTools(nth(i), "look", fmt.Sprintf(`{"name":"%d"}`, i)), says(fmt.Sprintf("Answer %d", i)))
		}
		f.say("And?", says("Well."))
		p := f.last()
		asked := map[string]bool{}
		size := 0
		for i, m := range p.Messages {
			if m.Role == textmodel.RoleSystem {
				continue
			}
			size += len(m.Text)
			for _, c := range m.Calls {
				size += len(c.Args)
				asked[c.ID] = true
			}
			if m.Role == textmodel.RoleTool && !asked[m.CallID] {
				t.Errorf("message %d answers %s, which was not called", i, m.CallID)
			}
		}
		if size > most+most/8+100 || size < most/2 {
			t.Errorf("the model was given %d characters", size)
		}
		if first := p.Messages[1]; !strings.HasPrefix(first.Text, markOf(p)+" What was said before, in short:\n") || !strings.Contains(first.Text, "Answer ") {
			t.Errorf("it begins with %q", first.Text)
		}
		if strings.Contains(transcript(p), "user: Question 0 ") || !strings.Contains(transcript(p), "user: Question 11 ") {
			t.Error(transcript(p))
		}
	})
}

// TestWhoseConversation: only its user can continue it; for others it does not exist.
func TestWhoseConversation(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.say("Secret", says("Yes."))
		sent, err := f.respond(t.Context(), Request{User: user.Must("eve"), Message: "What did I say?"})
		if !errors.Is(err, ErrUnknown) || len(sent.msgs) != 0 {
			t.Errorf("%v", err)
		}
		if len(f.kept.taken) != 0 {
			t.Error("the lease is still held")
		}
		// A conversation without a name gets one.
		began := time.Now()
		sent = &turnMessages{t: t}
		f.model.steps = []step{says("Hi.")}
		if err := f.agent.Respond(t.Context(), Request{User: user.Must("eve"), Message: "Hello"}, sent.emit); err != nil {
			t.Fatal(err)
		}
		id := sent.done().ConversationID
		if c := f.conversation(id); c.User != "eve" || c.Turns != 1 || c.Agent != "default" || c.CreatedAt.Before(began) || !strings.HasPrefix(id, "conv-") || len(id) < 20 {
			t.Errorf("%+v", c)
		}
	})
}
