package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

func claimSetting(t *testing.T) fixtureSetting {
	l, err := calls.ParseClaimLanguages([]string{"en"})
	if err != nil {
		t.Fatal(err)
	}
	return fixtureSetting{options: Options{Claims: l}}
}

// claimed returns the reasons of the claims in the client's events. Each claim has one audit record.
func (f *fixture) claimed(sent *turnMessages) string {
	var reasons, records []string
	for _, m := range of[*protocol.ClaimUnmatched](sent) {
		reasons = append(reasons, m.Kind+" "+m.Reason)
	}
	for _, r := range f.audited() {
		if r.Event == audit.EventClaim {
			records = append(records, r.Claim+" "+r.Why)
		}
	}
	if got := strings.Join(records, ", "); got != strings.Join(reasons, ", ") {
		f.t.Errorf("audited: %s; sent: %s", got, reasons)
	}
	return strings.Join(reasons, ", ")
}

// notices counts the notices of claims in the model's last request.
func (f *fixture) notices() (n int) {
	for _, m := range f.model.prompts[len(f.model.prompts)-1].Messages {
		if m.Role == textmodel.RoleUser && strings.Contains(m.Text, "in your last answer is not true") {
			n++
		}
	}
	return n
}

func TestClaims(t *testing.T) {
	book := callsTools(nth(1), "book", `{"name":"a"}`)
	for name, tt := range map[string]struct {
		turns   [][]step // the test checks the last
		history []textmodel.Message
		want    string
		notices int
	}{
		"no side effect": {turns: [][]step{{says("I've booked it."), says("Sorry, I have not booked it.")}},
			want: "book no_side_effect", notices: 1},
		"a side effect":                {turns: [][]step{{book, says("I've booked it.")}}},
		"in an earlier turn":           {turns: [][]step{{book, says("Yes.")}, {says("I've booked it.")}}},
		"it needs approval":            {turns: [][]step{{callsTools(nth(1), "pay", `{"name":"Bob"}`), says("I've paid Bob."), says("Please approve it.")}}, want: "pay waits_for_approval", notices: 1},
		"it has needed approval since": {turns: [][]step{{callsTools(nth(1), "pay", `{"name":"Bob"}`), says("May I?")}, {says("I've paid Bob."), says("Not yet.")}}, want: "pay waits_for_approval", notices: 1},
		"the model repeats the claim": {turns: [][]step{{says("I've booked it."), says("I've booked it.")}},
			want: "book no_side_effect, book no_side_effect", notices: 1},
		"a side effect after the claim": {turns: [][]step{{says("I've booked it."), book, says("Now I've booked it.")}},
			want: "book no_side_effect", notices: 1},
		"a side effect of the client": {turns: [][]step{{says("I've booked it.")}}, history: []textmodel.Message{{Role: textmodel.RoleUser, Text: "Hi"},
			{Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: "call_x", Name: "their_booking", Args: json.RawMessage(`{}`)}}},
			{Role: textmodel.RoleTool, CallID: "call_x", Text: "ok"}}},
		"another side effect of the client": {turns: [][]step{{says("I've booked it."), says("No.")}}, history: []textmodel.Message{{Role: textmodel.RoleUser, Text: "Hi"},
			{Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: "call_x", Name: "send_email", Args: json.RawMessage(`{}`)}}},
			{Role: textmodel.RoleTool, CallID: "call_x", Text: "ok"}}, want: "book no_side_effect", notices: 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, claimSetting(t), func(t *testing.T, f *fixture) {
				var sent *turnMessages
				for i, steps := range tt.turns {
					var err error
					if sent, err = f.respond(t.Context(), Request{Message: "Book it" + strings.Repeat("!", i), History: tt.history}, steps...); err != nil {
						t.Fatal(err)
					}
				}
				if got := f.claimed(sent); got != tt.want || f.notices() != tt.notices || sent.done().Status != protocol.DoneCompleted {
					t.Errorf("claims: %q, want %q; %d notices, want %d; %s", got, tt.want, f.notices(), tt.notices, sent.types())
				}
				if len(f.model.steps) > 0 {
					t.Errorf("%d answers were not requested", len(f.model.steps))
				}
			})
		})
	}
}

// TestApprovedClaim: after the approval the model's claim is true, in that turn and in the next.
func TestApprovedClaim(t *testing.T) {
	bubble(t, claimSetting(t), func(t *testing.T, f *fixture) {
		asked := of[*protocol.ConfirmationRequest](f.say("Pay", callsTools(nth(1), "pay", `{"name":"Bob"}`), says("May I?")))
		req := Request{Confirmation: &Confirmation{Token: asked[0].Token, Approved: true}}
		sent, err := f.respond(t.Context(), req, says("I've paid Bob."))
		if err != nil || f.claimed(sent) != "" {
			t.Error(err, sent.types())
		}
		if sent := f.say("Really?", says("Yes, I've paid Bob.")); f.claimed(sent) != "" {
			t.Error(sent.types())
		}
	})
}

// TestCorrectionIsRepeated: when a client repeats a message, the new attempt gives the model the notice once, and reports
// the claim to the client and the audit only once.
func TestCorrectionIsRepeated(t *testing.T) {
	bubble(t, claimSetting(t), func(t *testing.T, f *fixture) {
		req := Request{ID: "m-1", Message: "Book it"}
		broken := func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Err: errors.New("no connection")}
		}
		if sent, err := f.respond(t.Context(), req, says("I've booked it."), broken); err != nil || sent.done().Status != protocol.DoneFailed {
			t.Fatal(err, sent.types())
		}
		sent, err := f.respond(t.Context(), req, says("Sorry, it is not booked."))
		if err != nil || sent.types() != "text.done claim.unmatched text.done usage done" {
			t.Error(err, sent.types())
		}
		if f.claimed(sent) != "book no_side_effect" || f.notices() != 1 {
			t.Errorf("%d notices", f.notices())
		}
		if again, err := f.respond(t.Context(), req); err != nil || again.lines() != sent.lines() {
			t.Error(err, again.types())
		}
	})
}
