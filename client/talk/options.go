package talk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/protocol"
)

// Turn is a recording to speak or a text to type.
type Turn struct {
	Name  string
	Audio audio.Clip
	Text  string
}

func (t Turn) spoken() bool { return len(t.Audio.PCM) > 0 }

// Options describe a conversation. Those with a help text are flags of voicegw talk.
type Options struct {
	// The pending request of a Ticket is answered first, as a turn of its own before Turns.
	Ticket string `help:"Ticket of POST /v1/sessions; - reads it from standard input." placeholder:"TICKET" xor:"agent"`
	APIKey string `help:"API key or token; prefer VOICEGW_API_KEY, because other users see flags." placeholder:"KEY"`
	// InterruptAfter interrupts an answer that is still playing. A single turn is repeated as the interruption.
	InterruptAfter time.Duration `help:"Delay from an answer's first audio to the next turn, or the only one again." placeholder:"TIME"`
	Provider       string        `help:"Provider to request (default: the gateway's)." placeholder:"NAME"`
	Agent          string        `help:"Agent to talk to (default: the gateway's). A --ticket has its own." placeholder:"ID" xor:"agent"`
	Voice          string        `help:"Voice to request." placeholder:"NAME"`
	URL            string        `help:"Voice endpoint of the gateway." default:"ws://127.0.0.1:8080/v1/voice" placeholder:"URL" name:"url"`

	// Client connects; nil means http.DefaultClient.
	Client *http.Client `kong:"-"`
	// Dial replaces the connection to URL by one that cannot resume; nil connects to URL.
	Dial func(ctx context.Context) (voice.Conn, error) `kong:"-"`
	// Microphone sends audio all the time, even if nothing is spoken.
	Microphone bool `kong:"-"`
	// TimeZone is the user's IANA time zone; empty means the gateway's.
	TimeZone string `kong:"-"`
	// Turns are performed in order, each after the previous answer was heard. At least one, unless there is a Ticket.
	Turns []Turn `kong:"-"`
	// InputRate and OutputRate are in Hz. Zero means the recordings' own rate if the protocol supports it, else
	// 16000, and 24000 for output.
	InputRate, OutputRate int `kong:"-"`
	// Listen is the silence before the first turn, in which a greeting can begin. Zero means 0.3 s.
	Listen time.Duration `kong:"-"`
	// Patience bounds the silence while connecting and before each answer. Zero means 30 s.
	Patience  time.Duration  `kong:"-"`
	KeepAudio bool           `kong:"-"`
	Approval  voice.Approval `kong:"-"`
	// Answers has the lines typed for voice.ApprovalAsk: y or yes approves the oldest open question, anything else
	// declines it; a line without an open question is dropped. Close it at the end of input; Run does not wait for
	// that.
	Answers <-chan string `kong:"-"`
	// Events, if set, is called for every event, by one goroutine at a time. It must not block: the conversation runs
	// in real time.
	Events func(Event) `kong:"-"`
}

// DefaultURL is a gateway's default address.
const DefaultURL = "ws://127.0.0.1:8080/v1/voice"

const (
	defaultPatience   = 30 * time.Second
	defaultInputRate  = 16000
	defaultOutputRate = 24000
	maxTurns          = 1000
)

func (o Options) withDefaults() (Options, error) {
	o.URL = cmp.Or(o.URL, DefaultURL)
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	o.InputRate, o.OutputRate = cmp.Or(o.InputRate, o.ownRate()), cmp.Or(o.OutputRate, defaultOutputRate)
	if err := cmp.Or(o.check(), voice.CheckRates(o.InputRate, o.OutputRate)); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.InterruptAfter > 0 && len(o.Turns) == 1 && o.Ticket == "" {
		o.Turns = append(slices.Clone(o.Turns), o.Turns[0])
	}
	if o.Events == nil {
		o.Events = func(Event) {}
	}
	return o, nil
}

func (o Options) check() error {
	switch {
	case len(o.Turns) == 0 && o.Ticket == "":
		return errors.New("no turns; give at least one")
	case len(o.Turns) > maxTurns:
		return fmt.Errorf("%d turns; at most %d", len(o.Turns), maxTurns)
	case len(o.Ticket) > protocol.MaxTicketBytes:
		return errors.New("the ticket is too long")
	case o.InterruptAfter < 0:
		return errors.New("InterruptAfter is negative")
	case o.Approval == voice.ApprovalAsk && o.Answers == nil:
		return errors.New("Approval asks, but there are no Answers")
	}
	for i, t := range o.Turns {
		if !t.spoken() && t.Text == "" {
			return fmt.Errorf("turn %d (%s) has neither audio nor text", i+1, t.Name)
		}
	}
	return nil
}

func (o Options) ownRate() int {
	for _, t := range o.Turns {
		if t.spoken() && slices.Contains(protocol.InputRates(), t.Audio.Rate) {
			return t.Audio.Rate
		}
	}
	return defaultInputRate
}

// Event is an event of a conversation.
type Event struct {
	// AtMS is in ms since Run began.
	AtMS int64 `json:"at_ms"`
	// Event is one of the constants, or the type of the gateway's message.
	Event string `json:"event"`
	// Turn is the turn of Options.Turns, from 1; zero if it concerns none, and for a ticket's pending request.
	Turn    int                    `json:"turn,omitempty"`
	Text    string                 `json:"text,omitempty"`
	Message protocol.ServerMessage `json:"message,omitempty"`
}

// The events of the client.
const (
	EventSpeaking     = "speaking"            // the first sample of a turn was sent
	EventSpoken       = "spoken"              // the last voiced sample of a turn was sent
	EventTyped        = "typed"               // a text was sent
	EventPending      = "pending"             // the pending request is about to be answered
	EventInterrupting = "interrupting"        // like speaking, over an answer
	EventFirstAudio   = "first_audio"         // the first audio of an answer arrived
	EventAnswered     = "answered"            // the answer was heard to its end
	EventFailed       = "failed"              // a turn got no answer
	EventAsking       = "asking"              // a person is asked to approve the action in Text
	EventApproving    = "approving"           // an approval was sent
	EventDeclining    = "declining"           // a refusal was sent
	EventUnanswerable = "unanswerable"        // a question will expire without an answer
	EventUnanswered   = "unanswered"          // a question has expired
	EventDisconnected = "connection_lost"     // the connection was lost; Text has the reason
	EventRetrying     = "reconnecting"        // an attempt to resume failed
	EventMoving       = "moving"              // the session moves to another gateway, which takes a moment
	EventResumed      = "connection_restored" // the session resumed; Text has the outage
	EventNotResumed   = "not_restored"        // the session cannot be resumed
	EventSpeechLost   = "not_sent"            // speech was lost during the outage
	EventCall         = "call"                // an event of the phone call, in Text
	EventReport       = "report"              // the last line of JSON output
)

// ReadTicket reads a ticket from one line.
func ReadTicket(r io.Reader) (string, error) {
	line, err := io.ReadAll(io.LimitReader(r, protocol.MaxTicketBytes+2))
	ticket := strings.TrimSpace(string(line))
	switch {
	case err != nil:
		return "", fmt.Errorf("--ticket -: %w", err)
	case ticket == "" || len(ticket) > protocol.MaxTicketBytes || strings.ContainsAny(ticket, " \t\r\n"):
		return "", errors.New("--ticket -: standard input has no ticket")
	}
	return ticket, nil
}

const maxStdin = 256 << 20

// ReadClip reads a WAV file, or with - stdin, which may also be raw PCM16 mono at rate Hz.
func ReadClip(name string, stdin io.Reader, rate int) (audio.Clip, error) {
	if name != "-" {
		return audio.ReadFile(name)
	}
	data, err := io.ReadAll(io.LimitReader(stdin, maxStdin+1))
	switch {
	case err != nil:
		return audio.Clip{}, err
	case len(data) > maxStdin:
		return audio.Clip{}, fmt.Errorf("more than %d bytes", maxStdin)
	case bytes.HasPrefix(data, []byte("RIFF")):
		return audio.NonEmpty(audio.ReadWAV(bytes.NewReader(data)))
	case rate < 4000 || rate > 384000:
		return audio.Clip{}, fmt.Errorf("--rate must be from 4000 to 384000 Hz, not %d", rate)
	case len(data)%audio.BytesPerSample != 0:
		return audio.Clip{}, errors.New("PCM16 needs an even number of bytes; give 16-bit samples, or a WAV file")
	}
	return audio.NonEmpty(audio.Clip{Rate: rate, PCM: data}, nil)
}
