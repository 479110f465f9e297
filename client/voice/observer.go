package voice

import (
	"time"

	"voicegw/protocol"
)

// Observer receives everything that happens in a conversation, one call at a time. It must not block: the conversation
// runs in real time.
type Observer interface {
	// Heard receives each message of the gateway before the conversation handles it.
	Heard(now time.Time, m protocol.ServerMessage)
	// HeardAudio receives each frame before it is played. i is nil for a frame outside any item. pcm is valid until it
	// returns.
	HeardAudio(now time.Time, pcm []byte, i *Item)
	// Played reports the end of an item: played, flushed, or cut off by the end of the conversation.
	Played(i *Item)
	// Underrun reports how long a player was silent within an answer. buffer is its index in Options.Buffers.
	Underrun(buffer int, gap time.Duration)
	Happened(now time.Time, e Event)
}

// Event is a decision or an observation of the conversation.
type Event struct {
	Kind Kind
	// X is the exchange of the event; may be nil.
	X *Exchange
	// Text is a detail for a person. Err is the error of a connection or of an invalid message. GatewayError explains a
	// failure; may be nil.
	Text         string
	Err          error
	GatewayError *protocol.Error
	Approval     Approval
	N            int64
	// Act is the act that disconnected; empty if the connection was lost.
	Act Act
	// Resumption describes how the conversation resumed.
	Resumption *Resumption
}

// Kind is the type of an event.
type Kind int

// The kinds of events.
const (
	Began          Kind = iota // a turn of the script begins
	Speaking                   // the first voiced sample was spoken, or a text was sent
	Spoken                     // the last voiced sample was spoken
	PendingBegan               // the question asked before the session is about to be answered
	FirstAudio                 // the first frame of an answer arrived
	AnsweredEarly              // an answer began before the end of the speech
	Noticed                    // the gateway noticed interrupting speech
	Flushed                    // the interrupted answer was flushed
	Missed                     // no answer was left to interrupt
	Answered                   // a turn ended as expected
	Interrupted                // a turn was interrupted as expected
	Failed                     // a turn got no answer; Text gives the reason
	NothingPending             // no question was pending before the session
	Stuck                      // a turn stalled
	CutOff                     // the conversation ended before a turn was answered
	Question                   // a tool's question (Text) was asked, answered, or left to expire
	Dropped                    // N frames were dropped because the gateway does not read
	Violation                  // the gateway broke the protocol; see Text
	Refused                    // the session did not start; see Text or Err
	Lost                       // the connection ended unexpectedly (Err) or without session.ended (Text)
	Disconnected               // the connection is lost (Err, Act) and the conversation tries to resume; with Roam it is replaced
	Retrying                   // an attempt to connect failed: Err
	Resumed                    // the session was resumed: Resumption
	ResumeFailed               // the conversation cannot resume: Err; Lost follows
	OutageSkipped              // an outage was skipped: Text
	Displaced                  // a replaced connection ended: Err
	MissedMessages             // N messages are missing or out of order: Text
	MissedAudio                // N bytes of the answer Text were skipped after a resume
	AudioRepeated              // N acknowledged bytes of the answer Text were sent again
	SpeechLost                 // N frames were dropped because there was no connection for too long
)
