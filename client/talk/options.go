package talk

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/protocol"
)

// Turn is one thing to say: a recording, or a text to type.
type Turn struct {
	// Name tells it apart in reports: a file's name. Empty is fine.
	Name string
	// Audio is spoken if it has any samples, at whatever rate.
	Audio audio.Clip
	// Text is typed otherwise.
	Text string
}

func (t Turn) spoken() bool { return len(t.Audio.PCM) > 0 }

// Options describe a conversation.
type Options struct {
	// URL is the gateway's voice endpoint. Empty means DefaultURL.
	URL string
	// Client connects; nil means http.DefaultClient.
	Client *http.Client
	// Provider, Agent and Voice are asked for in session.start; empty leaves them
	// to the gateway.
	Provider, Agent, Voice string
	// TimeZone is the user's IANA time zone; empty leaves it to the gateway.
	TimeZone string
	// APIKey is shown when connecting, as a bearer token: an API key or a user's token. Empty means that
	// nothing is shown.
	APIKey string
	// Ticket admits to a voice session that was made for this client: by a text agent, or
	// POST /v1/sessions. What was asked there in writing is answered first, and counts as a
	// turn of its own, before Turns.
	Ticket string
	// Turns are said one after another, each after the answer to the one before has
	// been heard. At least one, unless there is a Ticket.
	Turns []Turn
	// InterruptAfter starts the next turn this long after the first audio of an
	// answer, if the answer is still being heard. With a single turn, that one is
	// said again as the interruption. Zero interrupts nothing.
	InterruptAfter time.Duration
	// InputRate and OutputRate are in Hz. Zero means for the input the recordings'
	// own rate if the protocol has it, else 16000, and for the output 24000.
	InputRate, OutputRate int
	// Patience is how long to wait without hearing anything: for the connection, and
	// for each answer. Zero means 30 s.
	Patience time.Duration
	// KeepAudio puts what was heard into the report.
	KeepAudio bool
	// Approval is who answers when a tool needs the user's approval.
	Approval voice.Approval
	// Answers delivers the lines that somebody types, for voice.ApprovalAsk: y or yes approves the
	// oldest open question, anything else declines it; a line without an open question is dropped.
	// Closing it means that nobody types any more; Run does not wait for that.
	Answers <-chan string
	// Events, if set, is called with everything that happens, by one goroutine at a time.
	// It must not block: the conversation runs in real time.
	Events func(Event)
}

// DefaultURL is where a gateway listens by default.
const DefaultURL = "ws://127.0.0.1:8080/v1/voice"

const (
	defaultPatience   = 30 * time.Second
	defaultInputRate  = 16000
	defaultOutputRate = 24000
	// maxTurns bounds a conversation.
	maxTurns = 1000
)

func (o Options) withDefaults() (Options, error) {
	if len(o.Turns) == 0 && o.Ticket == "" {
		return o, fmt.Errorf("%w: there is nothing to say; give at least one turn", ErrOptions)
	}
	if len(o.Turns) > maxTurns {
		return o, fmt.Errorf("%w: %d turns; at most %d", ErrOptions, len(o.Turns), maxTurns)
	}
	for i, t := range o.Turns {
		if !t.spoken() && t.Text == "" {
			return o, fmt.Errorf("%w: turn %d (%s) has neither audio nor text", ErrOptions, i+1, t.Name)
		}
	}
	if len(o.Ticket) > protocol.MaxTicketBytes {
		return o, fmt.Errorf("%w: the ticket is longer than any", ErrOptions)
	}
	if o.InterruptAfter < 0 {
		return o, fmt.Errorf("%w: InterruptAfter is negative", ErrOptions)
	}
	if o.Approval == voice.ApprovalAsk && o.Answers == nil {
		return o, fmt.Errorf("%w: Approval asks, but there are no Answers", ErrOptions)
	}
	o.URL = cmp.Or(o.URL, DefaultURL)
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.InputRate == 0 {
		o.InputRate = o.ownRate()
	}
	o.OutputRate = cmp.Or(o.OutputRate, defaultOutputRate)
	if err := o.checkRates(); err != nil {
		return o, err
	}
	if o.InterruptAfter > 0 && len(o.Turns) == 1 && o.Ticket == "" {
		o.Turns = append(slices.Clone(o.Turns), o.Turns[0])
	}
	if o.Events == nil {
		o.Events = func(Event) {}
	}
	return o, nil
}

// checkRates refuses rates that the protocol does not have.
func (o Options) checkRates() error {
	if !slices.Contains(protocol.InputRates(), o.InputRate) {
		return fmt.Errorf("%w: the input rate must be one of %v Hz, not %d", ErrOptions, protocol.InputRates(), o.InputRate)
	}
	if !slices.Contains(protocol.OutputRates(), o.OutputRate) {
		return fmt.Errorf("%w: the output rate must be one of %v Hz, not %d", ErrOptions, protocol.OutputRates(), o.OutputRate)
	}
	return nil
}

// ownRate is the rate of the first recording, if the protocol has it.
func (o Options) ownRate() int {
	for _, t := range o.Turns {
		if t.spoken() && slices.Contains(protocol.InputRates(), t.Audio.Rate) {
			return t.Audio.Rate
		}
	}
	return defaultInputRate
}

// Event is something that happened.
type Event struct {
	// AtMS is when, in ms since Run began.
	AtMS int64 `json:"at_ms"`
	// Event is what: one of the constants, or the type of the gateway's message.
	Event string `json:"event"`
	// Turn is which of Options.Turns it is about, from 1; zero if it is not about one, and for what was
	// asked before a session that a ticket opens.
	Turn int `json:"turn,omitempty"`
	// Text says more, for a person.
	Text string `json:"text,omitempty"`
	// Message is what the gateway sent, in the messages' own events.
	Message protocol.ServerMessage `json:"message,omitempty"`
}

// The events of this side.
const (
	EventSpeaking     = "speaking"            // the first sample of a turn was sent
	EventSpoken       = "spoken"              // the last voiced sample of a turn was sent
	EventTyped        = "typed"               // a text was sent
	EventPending      = "pending"             // what was asked before is to be answered
	EventInterrupting = "interrupting"        // like speaking, over an answer
	EventFirstAudio   = "first_audio"         // the first audio of an answer came
	EventAnswered     = "answered"            // the answer was heard to its end
	EventFailed       = "failed"              // a turn got no answer
	EventAsking       = "asking"              // somebody is asked to approve what Text says
	EventApproving    = "approving"           // an approval was sent
	EventDeclining    = "declining"           // a refusal was sent
	EventUnanswerable = "unanswerable"        // nobody answers a question: it will expire
	EventUnanswered   = "unanswered"          // a question has expired
	EventAway         = "connection_lost"     // the connection is gone; Text says why
	EventRetrying     = "reconnecting"        // an attempt to come back has failed
	EventMoving       = "moving"              // the session moves to another gateway, which takes a moment
	EventBack         = "connection_restored" // the session goes on; Text says after what time
	EventNotBack      = "not_restored"        // the session cannot be continued
	EventUnsaid       = "not_sent"            // speech was lost, because there was no connection
	EventReport       = "report"              // the last line of JSON output
)

// dial returns how to connect.
func (o Options) dial() protocol.DialOptions {
	out := protocol.DialOptions{Client: o.Client}
	if o.APIKey != "" {
		out.Header = http.Header{"Authorization": {"Bearer " + o.APIKey}}
	}
	return out
}
