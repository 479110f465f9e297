package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/client/talk"
	"voicegw/protocol"
)

// chatFlags are the flags of chat.
type chatFlags struct {
	operatorFlags
	Message      []string      `help:"Message to send; may be given several times. Without, messages are read line by line from the terminal or standard input." placeholder:"TEXT" sep:"none"`
	Conversation string        `help:"Conversation to go on with; a new one without." placeholder:"ID"`
	User         userName      `help:"Who speaks; the gateway takes your address without." placeholder:"NAME"`
	Voice        bool          `help:"When a voice session is offered, go on in it at once, and come back to text at its end."`
	Audio        []string      `help:"WAV file to speak in the voice session, after what was asked in writing has been answered; may be given several times." placeholder:"FILE" sep:"none"`
	Text         []string      `help:"Text to type in the voice session; may be given several times, between --audio." placeholder:"TEXT" sep:"none"`
	JSON         bool          `help:"Write one JSON line for each event." name:"json"`
	Approve      bool          `help:"Approve whatever a tool asks for. Without this or --deny the person at the terminal is asked; with --json nobody is." xor:"answer"`
	Deny         bool          `help:"Decline whatever a tool asks for." xor:"answer"`
	Timeout      time.Duration `help:"In the voice session, give up after hearing nothing for this long." default:"30s"`
}

// errTurnFailed says that an answer did not come to its end; why was shown.
var errTurnFailed = errors.New("the last message was not answered")

// chat holds a conversation in text with a running gateway.
func (p Process) chat(ctx context.Context, flags chatFlags, parsed *kong.Context) int {
	o, code := p.operator(flags.operatorFlags, parsed)
	if o == nil {
		return code
	}
	defer o.close()
	voice, err := p.voiceOptions(flags, parsed)
	if err != nil {
		p.complain("%v", err)
		return exitUsage
	}
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	width, isTerminal := terminal(p.Stdout)
	x := &texting{
		p: p, flags: flags, voice: voice, began: time.Now(), conversation: flags.Conversation,
		client: &talk.TextClient{BaseURL: o.base, APIKey: o.key},
		human:  talk.NewPrinter(p.Stdout, isTerminal, width), lines: talk.NewJSONPrinter(p.Stdout),
	}
	done := x.listen()
	defer done()
	if err := x.run(ctx); err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	return exitOK
}

// voiceOptions are those of the voice session that --voice goes on in.
func (p Process) voiceOptions(flags chatFlags, parsed *kong.Context) (talk.Options, error) {
	o := talk.Options{Patience: flags.Timeout}
	if flags.Timeout <= 0 {
		return o, errors.New("--timeout must be longer than nothing")
	}
	if !flags.Voice && len(flags.Audio)+len(flags.Text) > 0 {
		return o, errors.New("--audio and --text are said in the voice session; they need --voice")
	}
	for _, m := range flags.Message {
		if strings.TrimSpace(m) == "" {
			return o, errors.New("--message is empty")
		}
	}
	recordings, texts := flags.Audio, flags.Text
	for _, at := range parsed.Path {
		switch {
		case at.Flag == nil:
		case at.Flag.Name == "audio":
			name := recordings[0]
			recordings = recordings[1:]
			if name == "-" {
				return o, errors.New("--audio must be a file: standard input is for messages")
			}
			clip, err := p.readClip(name, 0)
			if err != nil {
				return o, fmt.Errorf("--audio %s: %w", name, err)
			}
			o.Turns = append(o.Turns, talk.Turn{Name: filepath.Base(name), Audio: clip})
		case at.Flag.Name == "text":
			if texts[0] == "" {
				return o, errors.New("--text is empty")
			}
			o.Turns = append(o.Turns, talk.Turn{Text: texts[0]})
			texts = texts[1:]
		}
	}
	return o, nil
}

// texting is a conversation in text under way.
type texting struct {
	// Fixed after chat.
	p      Process
	flags  chatFlags
	voice  talk.Options
	client *talk.TextClient
	human  *talk.Printer
	lines  *talk.JSONPrinter
	began  time.Time
	// typed are the lines that somebody types, or that stand on standard input; nil where
	// nobody can type. Closed at the end of the input. canAsk says that it is a person.
	typed  <-chan typedLine
	canAsk bool

	conversation string
	ahead        []typedLine // typed before the question that another one has answered
	named        bool        // the conversation's id has been shown
}

// typedLine is a line and when it was typed.
type typedLine struct {
	at   time.Time
	text string
}

// maxAhead is how many lines may be typed ahead.
const maxAhead = 64

// listen begins to read lines: of the terminal, else of standard input if messages come
// from there. done lets the terminal go.
func (x *texting) listen() (done func()) {
	nothing := func() {}
	if _, isTerminal := terminal(x.p.Stdin); isTerminal {
		// Opened again: reading it can be ended then, that of standard input cannot.
		tty, err := os.Open("/dev/tty")
		if err != nil {
			return nothing
		}
		if err := tty.SetReadDeadline(time.Time{}); err != nil {
			return func() { _ = tty.Close() }
		}
		lines, stop := typedLines(tty)
		x.typed, x.canAsk = stamped(lines), !x.flags.JSON
		return stop
	}
	if len(x.flags.Message) > 0 {
		return nothing
	}
	// Reading a pipe cannot be ended: this goroutine ends with its input or the process.
	lines := make(chan string) // from it, to stamped; it closes it
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(x.p.Stdin); s.Scan(); {
			lines <- s.Text()
		}
	}()
	x.typed = stamped(lines)
	return nothing
}

// stamped notes when each line came. Its goroutine ends with lines.
func stamped(lines <-chan string) <-chan typedLine {
	out := make(chan typedLine, maxAhead) // from it, to texting; it closes it
	go func() {
		defer close(out)
		for line := range lines {
			select {
			case out <- typedLine{time.Now(), line}:
			default: // nobody reads so far ahead
			}
		}
	}()
	return out
}

// run says all messages. The error is that of the first that was not answered.
func (x *texting) run(ctx context.Context) error {
	if len(x.flags.Message) > 0 {
		for _, m := range x.flags.Message {
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
			var refused *talk.TextRefused
			if !errors.Is(err, errTurnFailed) && !errors.As(err, &refused) {
				return err
			}
			if refused != nil {
				x.p.complain("%v", err)
			}
			first = errors.Join(first, err)
			if !x.canAsk {
				return first // a script goes no further
			}
		}
	}
}

// prompt reads the next message; io.EOF at the end.
func (x *texting) prompt(ctx context.Context) (string, error) {
	if len(x.ahead) > 0 {
		line := x.ahead[0]
		x.ahead = x.ahead[1:]
		return line.text, nil
	}
	if x.typed == nil {
		return "", io.EOF
	}
	if x.canAsk {
		x.human.Prompt("you")
	}
	select {
	case line, ok := <-x.typed:
		if ok {
			return line.text, nil
		}
		if x.canAsk {
			_, _ = fmt.Fprintln(x.p.Stdout) // the prompt has no end, and nobody is left to be told of an error
		}
		return "", io.EOF
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// event shows an event.
func (x *texting) event(e talk.Event) {
	if x.flags.JSON {
		x.lines.Event(e)
		return
	}
	x.human.Event(e)
}

// note shows what is no message of the gateway's.
func (x *texting) note(name, text string) {
	x.event(talk.Event{AtMS: time.Since(x.began).Milliseconds(), Event: name, Text: text})
}

// say sends a message and sees to what comes of it: questions, and voice.
func (x *texting) say(ctx context.Context, message string) error {
	turns := []talk.TextTurn{{Message: message}}
	for len(turns) > 0 {
		asked, offer, err := x.turn(ctx, turns[0])
		if err != nil {
			return err
		}
		turns = turns[1:]
		for _, q := range asked {
			if approved, answered := x.decide(ctx, q); answered {
				turns = append(turns, talk.TextTurn{Confirmation: &talk.TextAnswer{Token: q.Token, Approved: approved}})
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

// turn carries out one turn, and returns what it asks of the client.
func (x *texting) turn(ctx context.Context, turn talk.TextTurn) (asked []*protocol.ConfirmationRequest, offer *protocol.VoiceSessionStart, err error) {
	turn.ConversationID, turn.User = x.conversation, string(x.flags.User)
	done, err := x.client.Turn(ctx, turn, func(m protocol.ServerMessage) {
		x.event(talk.Event{AtMS: time.Since(x.began).Milliseconds(), Event: protocol.HeaderOf(m).Type, Message: m})
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
	x.conversation = done.ConversationID
	if !x.named && x.flags.Conversation == "" && !x.flags.JSON {
		x.human.Line("chat", "this conversation is "+done.ConversationID)
	}
	x.named = true
	if done.Status != protocol.DoneCompleted {
		return nil, nil, errTurnFailed
	}
	return asked, offer, nil
}

// decide finds the answer to a question; answered is false where nobody gives one.
func (x *texting) decide(ctx context.Context, q *protocol.ConfirmationRequest) (approved, answered bool) {
	switch {
	case x.flags.Approve:
		x.note(talk.EventApproving, q.Preview)
		return true, true
	case x.flags.Deny:
		x.note(talk.EventDeclining, q.Preview)
		return false, true
	case !x.canAsk:
		x.note(talk.EventUnanswerable, q.Preview)
		return false, false
	}
	x.note(talk.EventAsking, q.Preview)
	since := time.Now()
	late := time.NewTimer(time.Until(q.ExpiresAt.Time))
	defer late.Stop()
	for {
		select {
		case line, ok := <-x.typed:
			switch {
			case !ok:
				x.note(talk.EventUnanswerable, q.Preview)
				return false, false
			case line.at.Before(since): // it answers nothing: it was typed before
				x.ahead = append(x.ahead, line)
				continue
			}
			word := strings.ToLower(strings.TrimSpace(line.text))
			if approved = word == "y" || word == "yes"; approved {
				x.note(talk.EventApproving, q.Preview)
			} else {
				x.note(talk.EventDeclining, q.Preview)
			}
			return approved, true
		case <-late.C:
			x.note(talk.EventUnanswered, q.Preview)
			return false, false
		case <-ctx.Done():
			return false, false
		}
	}
}

// goOnByVoice accepts an offer with --voice, and tells how to elsewhere.
func (x *texting) goOnByVoice(ctx context.Context, offer *protocol.VoiceSessionStart) error {
	if !x.flags.Voice {
		if !x.flags.JSON {
			x.human.Line("voice", "go on with: voicegw talk --url "+shellQuote(offer.URL)+" --ticket "+shellQuote(offer.Ticket))
		}
		return nil
	}
	o := x.voice
	o.URL, o.Ticket = offer.URL, offer.Ticket
	base := time.Since(x.began).Milliseconds()
	o.Events = func(e talk.Event) {
		e.AtMS += base
		x.event(e)
	}
	switch {
	case x.flags.Approve:
		o.Approval = talk.ApprovalYes
	case x.flags.Deny:
		o.Approval = talk.ApprovalNo
	case x.canAsk:
		answers, stop := x.answers()
		defer stop()
		o.Approval, o.Answers = talk.ApprovalAsk, answers
	}
	report, err := talk.Run(ctx, o)
	if x.flags.JSON {
		return errors.Join(err, x.lines.Report(report, err))
	}
	return errors.Join(err, x.human.Report(report))
}

// answers hands what is typed on to a voice session, until stop.
func (x *texting) answers() (lines <-chan string, stop func()) {
	out := make(chan string)        // from the goroutine here, to the session; closed at the end of the input
	stopping := make(chan struct{}) // closed by stop
	stopped := make(chan struct{})  // closed by the goroutine
	go func() {
		defer close(stopped)
		for {
			select {
			case line, ok := <-x.typed:
				if !ok {
					close(out)
					return
				}
				select {
				case out <- line.text:
				case <-stopping:
					return
				}
			case <-stopping:
				return
			}
		}
	}()
	return out, func() { close(stopping); <-stopped }
}

// shellQuote writes a word so that a shell takes it as it is.
func shellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:@%+=", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
