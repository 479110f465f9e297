package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/protocol"

	"voicegw/orchestrator/calls"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// TestObserverOfATurn: an observer gets all steps of a turn in order, and its calls know their turn.
func TestObserverOfATurn(t *testing.T) {
	span, _ := protocol.ParseTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	var sent []string
	var openings []Opening
	set := fixtureSetting{options: Options{Follow: func(o Opening) Followed {
		openings = append(openings, o)
		return Followed{Span: span, Take: func(s Step) {
			switch {
			case s.At.IsZero():
				t.Error("a step without a time")
			case s.Replied != nil:
				sent = append(sent, strings.TrimSpace("replied "+s.Replied.Reply.Text))
				if first := s.Replied.First; s.Replied.Reply.Text != "" && (first.Before(s.Replied.Began) || first.After(s.At)) {
					t.Errorf("the first text is reported at %v", first)
				}
			case s.Got != nil:
				sent = append(sent, "got")
			case s.Over != nil:
				sent = append(sent, "over "+s.Over.Status+s.Over.Code)
			}
			for _, a := range s.Did {
				switch a.(type) {
				case calls.Run:
					sent = append(sent, "run")
				case calls.Answer:
					sent = append(sent, "answer")
				}
			}
		}}
	}}}
	bubble(t, set, func(t *testing.T, f *fixture) {
		f.say("Hello?", func(_ context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			pass(300 * time.Millisecond)
			delta("Hello.")
			return textmodel.Reply{Text: "Hello."}, nil
		})
		f.say("And?", func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Err: errors.New("gone")}
		})
	})
	want := []string{"replied Hello.", "over completed", "replied", "over failedprovider_unavailable"}
	if !slices.Equal(sent, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(sent, "\n"), strings.Join(want, "\n"))
	}
	if len(openings) != 2 || openings[0].Turn != 1 || openings[1].Said != "And?" || openings[0].ConversationID == "" || openings[0].Agent != "default" {
		t.Errorf("%+v", openings)
	}
}
