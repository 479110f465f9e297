package caller

import (
	"slices"
	"strings"
	"time"

	"voicegw/client/load/script"
)

// exchange is a turn of the script and what came of it.
type exchange struct {
	// Fixed when it begins.
	number int // in the call, from 1; 0 for what was asked before
	turn   *script.Turn
	// interrupts is the exchange whose answer this one interrupts; nil for none.
	interrupts *exchange
	// onset is when the first voiced sample is spoken, spoken when the last one is, by the
	// schedule; both are when a text was sent.
	onset, spoken time.Time

	known     time.Time // the gateway's word that the speech has ended; zero before
	first     time.Time // frame of the answer
	seen      time.Time // the gateway's word that speech has begun
	flushed   time.Time // of what it interrupts
	last      time.Time // frame of its answer since it was interrupted
	bytes     int       // of the answer
	early     bool      // an answer began before the end of the speech
	settled   bool
	earlyOver bool // such an answer has ended, and nothing has begun since
	completed bool // the gateway has ended its turn as completed
	failed    bool // or as failed
	toolEnded bool // the tool that it waits for
	cutShort  bool // by the exchange after it

	tools, broken, asks, codes []string
	answer, said               transcripts
}

// noteOnce remembers a name once.
func noteOnce(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// transcripts are the texts of one side, by id, in the order they began.
type transcripts []transcript

type transcript struct{ id, text string }

func (t *transcripts) set(id, text string) {
	for i := range *t {
		if (*t)[i].id == id {
			(*t)[i].text = text
			return
		}
	}
	*t = append(*t, transcript{id, text})
}

func (t transcripts) String() string {
	var parts []string
	for _, one := range t {
		parts = append(parts, one.text)
	}
	return strings.Join(parts, " ")
}
