package voice

import (
	"slices"
	"time"

	"voicegw/client/speech"
	"voicegw/protocol"
)

// Words are what a turn says.
type Words struct {
	// Recording is spoken by the act Say, Text is sent by the act Type.
	Recording *speech.Recording
	Text      string
}

// Exchange is a turn and its outcome. The time of something that did not happen is zero.
type Exchange struct {
	// Turn is what is done; Number counts the turns of the conversation from 1, and is 0 for
	// what was asked before the session. Index is where Turn stands in Options.Turns, -1 for
	// what was asked before.
	Turn   *Turn
	Number int
	Index  int
	// Words are what was said.
	Words Words
	// Interrupts is the exchange whose answer this one interrupts; nil if it interrupts nothing.
	Interrupts *Exchange

	// Onset is when the first voiced sample is spoken, Spoken when the last one has been, by
	// the schedule of the microphone; both are when a text was sent.
	Onset, Spoken time.Time
	// Known is when the gateway has said that the speech has ended, Seen that the
	// interrupting speech has begun.
	Known, Seen time.Time
	// First is the first frame of the answer, Last the last one.
	First, Last time.Time
	// Flushed is the flush of what this exchange interrupts.
	Flushed time.Time
	// Bytes of the answer came, of which Heard were played.
	Bytes, Heard int
	// Early says that an answer began before the end of the speech.
	Early bool
	// Completed says that the gateway has ended its turn as completed.
	Completed bool
	// Settled says that how the turn came out was decided.
	Settled bool
	// Codes are the errors that came.
	Codes []string
	// Said and Answer are the transcripts, if Turn.KeepText is set.
	Said, Answer Transcripts
	// Usage is that of the gateway's turns, Latency the newest that it has measured.
	Usage   protocol.Usage
	Latency *protocol.Latency

	returns   int  // how often the conversation had come back when it began
	taken     bool // the gateway has shown that it knows of it, since the last snapshot
	earlyOver bool // an early answer has ended, and nothing has begun since
	failed    bool // the gateway has ended its turn as failed
	lost      bool // the rest of an answer was lost with the connection: nobody has interrupted it
	toolEnded bool // the tool that it waits for
	told      int  // of onset and end of the speech: how many the observer was told of
}

// expectsError says whether an error that came is the one that answers the turn.
func (x *Exchange) expectsError() bool {
	return x.Turn.Error != "" && slices.Contains(x.Codes, x.Turn.Error)
}
