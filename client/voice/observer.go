package voice

import (
	"time"

	"voicegw/protocol"
)

// Observer is told of everything that happens in a conversation, one call at a time. It must not
// block: the conversation runs in real time.
type Observer interface {
	// Heard is called with each message of the gateway, before the conversation acts on it.
	Heard(now time.Time, m protocol.ServerMessage)
	// HeardAudio is called with each frame before it is played; i is nil for a frame that
	// belongs to no answer. pcm is valid until it returns.
	HeardAudio(now time.Time, pcm []byte, i *Item)
	// Played is called when an answer is over: it was played, or flushed, or the
	// conversation has ended.
	Played(i *Item)
	// Underrun reports how long the player with a buffer, by its index in Options.Buffers, was silent
	// in the middle of an answer.
	Underrun(buffer int, gap time.Duration)
	// Happened is called with every other event.
	Happened(now time.Time, e Event)
}

// Event is something that the conversation has decided or noticed.
type Event struct {
	Kind Kind
	// X is the exchange that the event is about; may be nil.
	X *Exchange
	// Text says more, for a person. Err is that of a connection, or of a message that cannot
	// be read. Told is the gateway's error that explains a failure; may be nil.
	Text string
	Err  error
	Told *protocol.Error
	// Approval is what becomes of a question.
	Approval Approval
	// N is a number of things.
	N int64
	// Act is what took the connection away; empty if it was lost by itself.
	Act Act
	// Returned is how the conversation has come back.
	Returned *Returned
}

// Kind is what happened.
type Kind int

// The kinds of events.
const (
	Began          Kind = iota // a turn of the script begins
	Speaking                   // the first voiced sample was spoken, or a text was sent
	Spoken                     // the last voiced sample was spoken
	PendingBegan               // what was asked before the session is to be answered
	FirstAudio                 // the first frame of an answer came
	AnsweredEarly              // an answer began before the end of the speech
	Noticed                    // the gateway notices speech that interrupts
	Flushed                    // what the turn interrupts falls silent
	Missed                     // there was no answer left to interrupt
	Answered                   // a turn is over as its script wants
	Interrupted                // or the next one interrupts it, as the script wants
	Failed                     // a turn got no answer; Text says why
	NothingPending             // nothing was asked before the session
	Stuck                      // nothing more comes of a turn
	Cut                        // a turn had no answer yet when the conversation ended
	Question                   // a tool's question (Text) is put to a person, answered, or left to expire
	Dropped                    // N frames were not sent, because the gateway does not read
	Violation                  // the gateway breaks the protocol; Text says how
	Refused                    // there is no session; Text says why, or Err
	Lost                       // the connection ended unexpectedly (Err), or without a goodbye (Text)
	WentAway                   // the connection is gone (Err, Act), and the conversation tries to come back; with Roam it is replaced
	Retrying                   // an attempt to come back, or to open another connection, has failed: Err
	CameBack                   // the session goes on: Returned
	NotBack                    // the conversation cannot come back: Err; Lost follows
	NotCut                     // the connection was to be taken away and was not: Text
	Displaced                  // a connection that another one has replaced has ended: Err
	MissedMessages             // N messages have not come, or not in order: Text
	MissedAudio                // N bytes of the answer Text were left out after a resume
	AudioAgain                 // N bytes of the answer Text have come again that the gateway knows to have come
	Unsaid                     // N frames were not sent, because there was no connection for too long
)
