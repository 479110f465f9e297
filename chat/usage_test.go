package chat

import (
	"context"
	"errors"
	"strings"
	"testing"

	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/protocol"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// TestUsageIsGuessed: an answer without a usage report, or broken off before it, is billed by an estimate, and the
// client learns that; a reported usage is billed as reported.
func TestUsageIsGuessed(t *testing.T) {
	broken := &textmodel.Error{Kind: transport.KindRetry, Err: errors.New("gone")}
	reported := textmodel.Usage{Input: 9, Cached: 3, Output: 4}
	for name, tc := range map[string]struct {
		reply   textmodel.Reply
		said    string
		err     error
		guesses int64
		output  int64
	}{
		"reported":           {textmodel.Reply{Text: "12345678", Usage: reported}, "12345678", nil, 0, 4},
		"not reported":       {textmodel.Reply{Text: "12345678"}, "12345678", nil, 1, 2},
		"broken off":         {textmodel.Reply{}, "123456789", broken, 1, 3},
		"broken at once":     {textmodel.Reply{}, "", broken, 0, 0},
		"not shown in parts": {textmodel.Reply{Text: "1234"}, "", nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var bills []Bill
			f := newFixture(t, fixtureSetting{options: Options{Bill: func(b Bill) cost.Amount {
				bills = append(bills, b)
				return cost.Amount{Micros: 1, Estimated: b.Estimated}
			}}})
			id := conversation.NewID()
			sent, err := f.respond(t.Context(), Request{ConversationID: id, Message: strings.Repeat("x", 400)}, func(_ context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
				if tc.said != "" {
					delta(tc.said)
				}
				return tc.reply, tc.err
			})
			if err != nil {
				t.Fatal(err)
			}
			if kept := f.conversation(id); kept.Digest().CostUSDMicros != 1 {
				t.Errorf("saved is %+v", kept.Digest())
			}
			if len(bills) != 1 || bills[0].Estimated != tc.guesses || bills[0].Usage.Output != tc.output {
				t.Fatalf("the bills are %+v", bills)
			}
			if in := bills[0].Usage.Input; tc.guesses > 0 && in < 100 || tc.guesses == 0 && tc.err == nil && in != reported.Input {
				t.Errorf("the input is %d tokens", in)
			}
			for _, m := range sent.msgs {
				if u, ok := m.(*protocol.TurnUsage); ok && (u.Estimated != (tc.guesses > 0) || u.OutputTokens != tc.output) {
					t.Errorf("the client gets %+v", u)
				}
			}
		})
	}
}
