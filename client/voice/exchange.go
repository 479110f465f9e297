package voice

import (
	"slices"
	"strings"
	"time"

	"voicegw/protocol"
)

// Words are the content of a turn.
type Words struct {
	// Recording is used by the act Say, Text by the act Type.
	Recording *Recording
	Text      string
}

// Exchange is a turn and its outcome. The time of an event that did not happen is zero.
type Exchange struct {
	// Turn is the turn of the script. Number counts turns from 1, and is 0 for a question asked before the session.
	// Index is Turn's place in Options.Turns, or -1 for a question asked before the session.
	Turn   *Turn
	Number int
	Index  int
	Words  Words
	// Interrupts is the exchange whose answer this one interrupts, or nil.
	Interrupts *Exchange

	// Onset is when the first voiced sample is spoken and Spoken when the last one was, by the microphone's schedule.
	// For text both are the time of sending.
	Onset, Spoken time.Time
	// Known is when the gateway reported the end of the speech, Seen when it reported interrupting speech.
	Known, Seen time.Time
	// First is the answer's first frame, Last its last one.
	First, Last time.Time
	Flushed     time.Time
	// Bytes of the answer arrived; Heard of them were played.
	Bytes, Heard int
	// Early: an answer began before the end of the speech.
	Early     bool
	Completed bool
	Settled   bool
	// Codes are error codes received during the turn.
	Codes []string
	// Said and Answer are the transcripts, if Turn.KeepText is set.
	Said, Answer Transcripts
	// Usage is the sum over the gateway's turns, Latency the newest measurement.
	Usage   protocol.Usage
	Latency *protocol.Latency

	resumes   int  // how often the conversation had resumed when the exchange began
	taken     bool // the gateway has acknowledged it since the last snapshot
	earlyOver bool // an early answer ended, and no other has begun
	failed    bool // the gateway ended its turn as failed
	lost      bool // the rest of an answer was lost with the connection
	toolEnded bool // the awaited tool finished
	reported  int  // how many of onset and end of speech were reported to the observer
}

func (x *Exchange) expectsError() bool {
	return x.Turn.Error != "" && slices.Contains(x.Codes, x.Turn.Error)
}

// settle decides the outcome of a turn, once. The exchange may be nil.
func (x *Exchange) settle(now time.Time, o Observer, e Event) {
	if x == nil || x.Settled {
		return
	}
	x.Settled, e.X = true, x
	o.Happened(now, e)
}

func (x *Exchange) fail(now time.Time, o Observer, e Event) {
	if x.expectsError() {
		e = Event{Kind: Answered}
	}
	x.settle(now, o, e)
}

// endsInSilence reports whether the next turn begins in silence. The exchange may be nil.
func (x *Exchange) endsInSilence() bool {
	return x == nil || !slices.Contains([]WaitFor{ForFirstAudio, ForNothing, ForTool}, x.Turn.WaitFor)
}

func (x *Exchange) turnEnded(now time.Time, m *protocol.TurnEnded) {
	x.Usage = x.Usage.Plus(m.Usage)
	if m.Latency != nil {
		x.Latency = m.Latency
	}
	switch {
	case now.Before(x.Spoken):
		// A pause in the recording ended the turn: another one follows, unless the model ignores the rest.
		x.earlyOver = m.Status == statusCompleted
	case m.Status == statusCompleted:
		x.Completed = true
	case m.Status == statusFailed:
		x.failed = true
	case m.Status == statusInterrupted:
		x.Completed = x.Completed || x.lost
	}
}

// Values of TurnEnded.Status.
const (
	statusCompleted   = "completed"
	statusFailed      = "failed"
	statusInterrupted = "interrupted"
)

// Transcripts are the texts of one side, by id, in order of their beginning.
type Transcripts []transcript

type transcript struct{ id, text string }

const maxTranscripts = 100

func (t *Transcripts) set(id, text string) {
	for i := range *t {
		if (*t)[i].id == id {
			(*t)[i].text = text
			return
		}
	}
	if len(*t) < maxTranscripts {
		*t = append(*t, transcript{id, text})
	}
}

// String joins all texts.
func (t Transcripts) String() string {
	var parts []string
	for _, one := range t {
		parts = append(parts, one.text)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}
