package voice

import (
	"fmt"
	"slices"
	"time"

	"voicegw/protocol"
)

// Options describe a conversation. Fields are required unless noted.
type Options struct {
	// Start is the first message. Its rates apply to both directions. With a ticket, a question asked before the
	// session is answered first; Pending is its turn.
	Start   protocol.Start
	Pending *Turn
	// Turns are performed in order and are read-only. Words returns the content of the turn that begins: index is its
	// place in Turns, count the number of turns so far, pass the number of the pass through the turns, from 1.
	Turns []Turn
	Words func(index, count, pass int) Words
	// Microphone sends audio continuously, Frame at a time. Silence is a frame of silence.
	Microphone bool
	Frame      time.Duration
	Silence    []byte
	// PushToTalk reports the beginning and end of speech to the model.
	PushToTalk bool
	// Goodbye allows the model to end the session at any time.
	Goodbye bool
	// Until is when turns stop beginning; they are repeated until then. Zero means one pass. HangUp ends the
	// conversation at Until even during a turn.
	Until  time.Time
	HangUp bool
	// Resume describes resuming after a lost connection. Outages disconnect on purpose.
	Resume  ResumeOptions
	Outages []Outage
	// ConnectTime limits the start of the session, PendingTime the answer to a question asked before it, GoodbyeTime
	// its end, and Patience how long a rest waits for silence.
	ConnectTime, PendingTime, GoodbyeTime, Patience time.Duration
	// ThinkTime is the delay before an answer to a tool's question.
	ThinkTime time.Duration
	// Buffers are the buffer sizes of the players whose underruns are counted. The player at index Reporting reports
	// its position to the gateway.
	Buffers   []time.Duration
	Reporting int
}

// CheckRates rejects rates in Hz that the protocol does not support.
func CheckRates(input, output int) error {
	if !slices.Contains(protocol.InputRates(), input) {
		return fmt.Errorf("the input rate must be one of %v Hz, not %d", protocol.InputRates(), input)
	}
	if !slices.Contains(protocol.OutputRates(), output) {
		return fmt.Errorf("the output rate must be one of %v Hz, not %d", protocol.OutputRates(), output)
	}
	return nil
}

func (o *Options) end() time.Time {
	switch {
	case o.Until.IsZero():
		return time.Time{}
	case o.HangUp:
		return o.Until
	default:
		return o.Until.Add(overtime)
	}
}
