package talk

import (
	"errors"
	"strings"
	"testing"
)

// TestTicket: the pending request is answered first and reported as a turn of its own; the client's turns follow.
func TestTicket(t *testing.T) {
	for name, turns := range map[string][]Turn{"alone": nil, "with a turn": {{Text: "And?"}}} {
		t.Run(name, func(t *testing.T) {
			g := newGateway()
			g.greets = true // its first turn begins without the client
			r, events := complete(t, Options{Ticket: "secret", Turns: turns}, g)
			if g.ticket != "secret" || len(g.texts) != len(turns) {
				t.Errorf("the gateway got the ticket %q and the texts %q", g.ticket, g.texts)
			}
			if len(r.Turns) != 1+len(turns) {
				t.Fatalf("%+v", r.Turns)
			}
			if first := r.Turns[0]; !first.Pending || first.Typed || !first.Answered || first.AnswerMS != 2000 || first.FirstAudioMS == nil {
				t.Errorf("%+v", first)
			}
			if len(turns) > 0 {
				if at := find(t, events, EventTyped, 1); at < find(t, events, EventAnswered, 0) || !r.Turns[1].Answered {
					t.Errorf("the turn was said after %d ms: %+v", at, r.Turns[1])
				}
			}
			if r.Handback == nil || r.Handback.ConversationID != "conv-1" {
				t.Errorf("%+v", r.Handback)
			}
			text := printed(t, events, r)
			for _, want := range []string{"before     answering the pending request", "before     answered", "handback   1 turn.", "(asked before)"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if strings.Contains(text, "secret") {
				t.Error("the ticket is shown")
			}
		})
	}
}

// TestTicketWithoutARequest: a session without a pending request waits for the client, which reports that it has no
// turns.
func TestTicketWithoutARequest(t *testing.T) {
	g := newGateway()
	r, _, err := hold(t, Options{Ticket: "secret", Turns: []Turn{question()}}, g)
	if err != nil || len(r.Turns) != 1 || r.Turns[0].Pending || !r.Turns[0].Answered {
		t.Errorf("%v, %+v", err, r.Turns)
	}
	_, _, err = hold(t, Options{Ticket: "secret"}, newGateway())
	if !errors.Is(err, ErrUnanswered) || !strings.Contains(err.Error(), "no pending request") {
		t.Error(err)
	}
}

// TestPendingUnanswered: a request without audio is not answered.
func TestPendingUnanswered(t *testing.T) {
	g := newGateway()
	g.greets, g.noAudio = true, true
	if r, _, err := hold(t, Options{Ticket: "secret"}, g); !errors.Is(err, ErrUnanswered) || r.Turns[0].Answered {
		t.Errorf("%v, %+v", err, r.Turns)
	}
	if _, err := (Options{Ticket: strings.Repeat("x", 2000)}).withDefaults(); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}
