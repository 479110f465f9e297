package chat

import (
	"context"
	"errors"
	"testing"
	"time"

	"voicegw/protocol"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// TestTurnsAreObserved: the observer gets each turn once, with the time until its first piece of text and until its
// end.
func TestTurnsAreObserved(t *testing.T) {
	var sent []TurnOver
	set := fixtureSetting{options: Options{Observe: func(e TurnOver) { sent = append(sent, e) }}}
	bubble(t, set, func(t *testing.T, f *fixture) {
		f.say("Hello?", func(_ context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			pass(300 * time.Millisecond)
			delta("Hel")
			pass(700 * time.Millisecond)
			delta("lo.")
			return textmodel.Reply{Text: "Hello.", Usage: textmodel.Usage{Input: 10, Output: 2}}, nil
		})
		f.say("And?", func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Err: errors.New("gone")}
		})
		want := []TurnOver{
			{Status: protocol.DoneCompleted, Took: time.Second, First: 300 * time.Millisecond, Usage: textmodel.Usage{Input: 10, Output: 2}},
			{Status: protocol.DoneFailed, Code: protocol.CodeProviderUnavailable},
		}
		if len(sent) != 2 || sent[0] != want[0] || sent[1] != want[1] {
			t.Errorf("got %+v, want %+v", sent, want)
		}
	})
}
