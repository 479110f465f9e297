package talk

import (
	"strings"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// exchange is one turn and the answer to it.
type exchange struct {
	// Fixed after newExchange.
	number int // from 1
	turn   Turn
	// pending is what was asked before a session that a ticket opens: it is not said.
	pending bool
	pcm     []byte // at the input rate; empty for a text
	// voicedFrom and voicedTo are where in pcm the speech begins and ends, in bytes.
	voicedFrom, voicedTo int

	sent int // bytes of pcm
	// onset is when the first voiced sample was sent (or the text), spokenAt when
	// the last one was; zero before.
	onset, spokenAt time.Time

	// firstAudio is when the first byte of the answer came, lastAudio the last one.
	// An answer that began before the turn had been said, and was flushed by the
	// rest of it, answers a part of it (the recording holds a pause) and does not
	// count.
	firstAudio, lastAudio time.Time
	answerBytes           int
	heardBytes            int
	completed             bool // the gateway says that the turn is complete
	// settledEarly says that the gateway completed a turn before this one had been
	// said to its end, and has not gone on: what followed was no speech to it.
	settledEarly bool

	interruptedBy *exchange
	flushedAt     time.Time
	over          bool
	answered      bool
	reason        string

	said, answer utterances
	usage        protocol.Usage
	latency      *protocol.Latency
}

func newExchange(number int, turn Turn, rate int) (*exchange, error) {
	x := &exchange{number: number, turn: turn}
	if turn.spoken() {
		clip, err := turn.Audio.Resample(rate)
		if err != nil {
			return nil, err
		}
		x.pcm = clip.PCM
		x.voicedFrom, x.voicedTo = voiced(x.pcm, rate)
	}
	return x, nil
}

// again returns an exchange that says the same.
func (x *exchange) again(number int) *exchange {
	return &exchange{number: number, turn: x.turn, pcm: x.pcm, voicedFrom: x.voicedFrom, voicedTo: x.voicedTo}
}

func (x *exchange) report(rate int) TurnReport {
	r := TurnReport{
		Name: x.turn.Name, Typed: !x.turn.spoken() && !x.pending, Pending: x.pending, Answered: x.answered, Reason: x.reason,
		Said: x.said.text(), Answer: x.answer.text(),
		FirstAudioMS: between(x.spokenAt, x.firstAudio),
		AnswerMS:     audio.MS(rate, x.answerBytes), HeardMS: audio.MS(rate, x.heardBytes),
		Latency: x.latency, Usage: x.usage,
	}
	if by := x.interruptedBy; by != nil && !by.onset.IsZero() {
		r.Interruption = &Interruption{FlushMS: between(by.onset, x.flushedAt)}
		if x.lastAudio.After(by.onset) {
			r.Interruption.LastAudioMS = x.lastAudio.Sub(by.onset).Milliseconds()
		}
	}
	return r
}

// maxUtterances bounds what is kept of one side of an exchange.
const maxUtterances = 100

// utterances are the transcripts of one side of an exchange, in the order they
// began.
type utterances struct {
	ids   []string
	texts []string
}

// set takes a transcript: the whole text so far.
func (u *utterances) set(id, text string) {
	for i := range u.ids {
		if u.ids[i] == id {
			u.texts[i] = text
			return
		}
	}
	if len(u.ids) < maxUtterances {
		u.ids, u.texts = append(u.ids, id), append(u.texts, text)
	}
}

func (u *utterances) text() string {
	return strings.TrimSpace(strings.Join(u.texts, " "))
}
