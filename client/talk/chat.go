package talk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"voicegw/client/voice"
	"voicegw/internal/textutil"
	"voicegw/protocol"
)

// ChatOptions describe a text conversation.
type ChatOptions struct {
	Client *TextClient
	// Conversation is the id of the conversation to continue; empty begins one.
	Conversation string
	// Agent answers the first message and continues the conversation; empty means the conversation's own agent or the
	// gateway's default. Later messages name no agent, so that an agent can hand off to another.
	Agent string
	// TimeZone is the user's IANA time zone; empty means the gateway's.
	TimeZone string
	User     string
	Messages []string
	// Approval answers tools' approval requests. With voice.ApprovalNobody the terminal's user is asked, unless JSON
	// is set.
	Approval voice.Approval
	// OnByVoice accepts an offer to continue by voice, with the turns and the patience of Voice, and returns to text
	// at its end.
	OnByVoice bool
	Voice     Options
	JSON      bool
	// In and Out are standard input and output. Complain explains to the user why a message was refused.
	In       io.Reader
	Out      io.Writer
	Complain func(error)
}

// errTurnFailed means that an answer was not completed; its reason was shown.
var errTurnFailed = errors.New("the last message was not answered")

// Chat holds a text conversation. The error says why it could not continue or that a message was not answered; the
// end of input is not an error.
func Chat(ctx context.Context, o ChatOptions) error {
	x := &texting{o: o, d: NewDisplay(o.Out, o.JSON), began: time.Now(), conversation: o.Conversation, agent: o.Agent}
	done := x.listen()
	defer done()
	return x.run(ctx)
}

type texting struct {
	// Fixed after Chat.
	o     ChatOptions
	d     *Display
	began time.Time
	// typed has the lines from the terminal or standard input and is closed at their end; nil without input. canAsk
	// means that a user types.
	typed  <-chan string
	canAsk bool

	conversation string
	agent        string   // for the next turn
	ahead        []string // lines typed before a question that was answered elsewhere
	named        bool     // the conversation's id was shown
}

const maxAhead = 64

// listen reads lines from the terminal, or from standard input if messages come from there. done restores the
// terminal.
func (x *texting) listen() (done func()) {
	nothing := func() {}
	if _, isTerminal := textutil.Width(x.o.In); isTerminal {
		lines, stop, err := textutil.OpenTyped()
		if err != nil {
			return nothing
		}
		x.typed, x.canAsk = buffered(func() (string, bool) {
			line, ok := <-lines
			return line, ok
		}), !x.o.JSON
		return stop
	}
	if len(x.o.Messages) > 0 {
		return nothing
	}
	// Reading from a pipe cannot be interrupted: the goroutine ends with its input or the process.
	input := bufio.NewScanner(x.o.In)
	x.typed = buffered(func() (string, bool) {
		ok := input.Scan()
		return input.Text(), ok
	})
	return nothing
}

// buffered reads lines as they are typed. Its goroutine ends with the lines.
func buffered(next func() (string, bool)) <-chan string {
	out := make(chan string, maxAhead) // to texting, or to its voice session; closed here
	go func() {
		defer close(out)
		for line, ok := next(); ok; line, ok = next() {
			select {
			case out <- line:
			default: // too far ahead: dropped
			}
		}
	}()
	return out
}

func (x *texting) run(ctx context.Context) error {
	if len(x.o.Messages) > 0 {
		for _, m := range x.o.Messages {
			if err := x.say(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	var first error
	for {
		line, err := x.prompt(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return first
		case err != nil:
			return err
		case strings.TrimSpace(line) == "":
			continue
		}
		if err := x.say(ctx, line); err != nil {
			var refused *TextRefused
			if !errors.Is(err, errTurnFailed) && !errors.As(err, &refused) {
				return err
			}
			if refused != nil {
				x.o.Complain(err)
			}
			first = errors.Join(first, err)
			if !x.canAsk {
				return first // a script stops here
			}
		}
	}
}

// prompt reads the next message; io.EOF at the end.
func (x *texting) prompt(ctx context.Context) (string, error) {
	if len(x.ahead) > 0 {
		line := x.ahead[0]
		x.ahead = x.ahead[1:]
		return line, nil
	}
	if x.typed == nil {
		return "", io.EOF
	}
	if x.canAsk {
		x.d.prompt("you")
	}
	select {
	case line, ok := <-x.typed:
		if ok {
			return line, nil
		}
		if x.canAsk {
			_, _ = fmt.Fprintln(x.o.Out) // best effort: the prompt's line stays open
		}
		return "", io.EOF
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (x *texting) note(name, text string) {
	x.d.Event(Event{AtMS: time.Since(x.began).Milliseconds(), Event: name, Text: text})
}

func (x *texting) say(ctx context.Context, message string) error {
	turns := []TextTurn{{Message: message, TimeZone: x.o.TimeZone}}
	for len(turns) > 0 {
		asked, offer, err := x.turn(ctx, turns[0])
		if err != nil {
			return err
		}
		turns = turns[1:]
		for _, q := range asked {
			if approved, answered := x.decide(ctx, q); answered {
				turns = append(turns, TextTurn{TimeZone: x.o.TimeZone, Confirmation: &TextAnswer{Token: q.Token, Approved: approved}})
			}
		}
		if offer != nil {
			if err := x.goOnByVoice(ctx, offer); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *texting) turn(ctx context.Context, turn TextTurn) (asked []*protocol.ConfirmationRequest,
	offer *protocol.VoiceSessionStart, err error) {
	turn.ConversationID, turn.User, turn.Agent = x.conversation, x.o.User, x.agent
	done, err := x.o.Client.Turn(ctx, turn, func(m protocol.ServerMessage) {
		x.d.Event(Event{AtMS: time.Since(x.began).Milliseconds(), Event: protocol.HeaderOf(m).Type, Message: m})
		switch m := m.(type) {
		case *protocol.ConfirmationRequest:
			asked = append(asked, m)
		case *protocol.VoiceSessionStart:
			offer = m
		}
	})
	if err != nil {
		return nil, nil, err
	}
	x.conversation, x.agent = done.ConversationID, ""
	if !x.named && x.o.Conversation == "" {
		x.d.line("chat", "conversation id: "+done.ConversationID)
	}
	x.named = true
	if done.Status != protocol.DoneCompleted {
		return nil, nil, errTurnFailed
	}
	return asked, offer, nil
}

// decide finds the answer to an approval request; answered is false without one.
func (x *texting) decide(ctx context.Context, q *protocol.ConfirmationRequest) (approved, answered bool) {
	switch {
	case x.o.Approval == voice.ApprovalYes:
		x.note(EventApproving, q.Preview)
		return true, true
	case x.o.Approval == voice.ApprovalNo:
		x.note(EventDeclining, q.Preview)
		return false, true
	case !x.canAsk:
		x.note(EventUnanswerable, q.Preview)
		return false, false
	}
	x.note(EventAsking, q.Preview)
	for range len(x.typed) { // typed before the question
		x.ahead = append(x.ahead, <-x.typed)
	}
	late := time.NewTimer(time.Until(q.ExpiresAt.Time))
	defer late.Stop()
	select {
	case line, ok := <-x.typed:
		if !ok {
			x.note(EventUnanswerable, q.Preview)
			return false, false
		}
		word := strings.ToLower(strings.TrimSpace(line))
		name := EventDeclining
		if approved = word == "y" || word == "yes"; approved {
			name = EventApproving
		}
		x.note(name, q.Preview)
		return approved, true
	case <-late.C:
		x.note(EventUnanswered, q.Preview)
	case <-ctx.Done():
	}
	return false, false
}

func (x *texting) goOnByVoice(ctx context.Context, offer *protocol.VoiceSessionStart) error {
	if !x.o.OnByVoice {
		x.d.line("voice", "continue with: voicegw talk --url "+shellQuote(offer.URL)+" --ticket="+shellQuote(offer.Ticket))
		return nil
	}
	o := x.o.Voice
	o.URL, o.Ticket = offer.URL, offer.Ticket
	base := time.Since(x.began).Milliseconds()
	o.Events = func(e Event) {
		e.AtMS += base
		x.d.Event(e)
	}
	o.Approval = x.o.Approval
	if o.Approval == voice.ApprovalNobody && x.canAsk {
		o.Approval, o.Answers = voice.ApprovalAsk, x.typed
	}
	return x.d.report(Run(ctx, o))
}

func shellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:@%+=", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
