package voice

import (
	"time"

	"voicegw/protocol"
)

// Options describe a conversation. Everything is required unless it says otherwise.
type Options struct {
	// Start is the first message. Its rates hold for what is spoken and played, and with a
	// ticket what was asked before is answered first; Pending is then its turn.
	Start   protocol.Start
	Pending *Turn
	// Turns are gone through in order; they must not be changed. Words says what a turn says
	// that is about to begin: index is its place in Turns, count the number of turns so far,
	// pass how often the turns have been gone through, from 1.
	Turns []Turn
	Words func(index, count, pass int) Words
	// Microphone sends audio all the time, Frame at a time; Silence is a frame of silence.
	Microphone bool
	Frame      time.Duration
	Silence    []byte
	// PushToTalk tells the model where speech begins and ends.
	PushToTalk bool
	// Goodbye means that the model may end the session at any time.
	Goodbye bool
	// Until is when no further turn begins; the turns are then repeated until it. Zero is
	// after one pass through the turns. HangUp ends the conversation at Until, whatever is
	// being said.
	Until  time.Time
	HangUp bool
	// Return is how the conversation comes back after a lost connection, and Outages take the
	// connection away.
	Return  Return
	Outages []Outage
	// ConnectTime is how long the session may take to begin, PendingTime its answer to what
	// was asked before, GoodbyeTime its end, Patience how long a rest waits for silence.
	ConnectTime, PendingTime, GoodbyeTime, Patience time.Duration
	// ThinkTime is how long an answer to a tool's question takes.
	ThinkTime time.Duration
	// Buffers are the sizes of the players that underruns are counted for; the one at index
	// Reporting tells the gateway what was heard.
	Buffers   []time.Duration
	Reporting int
}

// end is when the conversation is over at the latest; zero for never.
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
