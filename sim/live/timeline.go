package live

import (
	"cmp"
	"strings"
	"time"

	"voicegw/audio"
	"voicegw/internal/livewire"
	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// Times on the timeline, in ms, from the recording and the measurements.
const (
	tickMS      = 50
	leadMS      = 850 // the output is so far behind the input: the first audio comes that long after the begin
	lagMS       = 600 // from the end of a place to the events about it: words arrived 550 to 680 ms after it
	silenceMS   = 800 // ends an utterance: a delegation came 0.9 s after the last sound
	interruptMS = 500 // of speech stop the model; shorter speech over its voice is a back-channel without an answer
	wordMS      = 300 // the pace of the words of an utterance, whose length is not known while it lasts
	gapMS       = 400 // between two lines
	// commentaryAfter and instructionsAfter are from the place of an append to its words.
	commentaryAfter, instructionsAfter = 200, 1400
	maxAhead                           = time.Minute // of audio that waits because it came faster than real time
	never                              = -1
)

// slotOf is the begin of the place that contains a time.
func slotOf(ms int64) int64 { return ms / livewire.SlotMS * livewire.SlotMS }

// input is the track that comes in. Its clock is that of the session.
type input struct {
	format   openaiwire.Format
	detector *audio.Detector
	queue    []byte    // encoded, not yet on the timeline
	due      time.Time // when the next tick may be
	last     time.Time // when audio came
	ms       int64
	any      bool // audio was received
	muted    bool
	speech   *utterance // nil without one
	// words are fragments of transcripts that are not sent, in order.
	words []fragment
	pcm   []byte // scratch
	quiet []byte // a tick of silent PCM
}

// utterance is speech that has not ended.
type utterance struct {
	edge    int64    // where its sound began
	words   []string // the spoken words, if a rule gives them
	told    int      // of words
	over    bool     // it began while the model spoke
	stopped bool     // it has stopped the model
}

type fragment struct {
	slot int64
	text string
}

// add adds words to the place, or to the last one if that is later.
func add(list []fragment, slot int64, text string) []fragment {
	if n := len(list); n > 0 && list[n-1].slot >= slot {
		list[n-1].text += text
		return list
	}
	return append(list, fragment{slot, text})
}

func (in *input) begin(f openaiwire.Format) {
	in.format = f
	in.detector = audio.NewDetector(audio.DetectorOptions{Rate: f.Hz(), SilenceMS: silenceMS})
	in.quiet = make([]byte, audio.Bytes(f.Hz(), tickMS*time.Millisecond))
}

func (in *input) tickBytes() int { return in.format.BytesPerMS() * tickMS }

// next is when the next tick is due; false without enough audio.
func (in *input) next(c *conn) (time.Time, bool) {
	return in.due, c.sess != nil && len(in.queue) >= in.tickBytes()
}

// appendAudio takes audio of the client in base64, which it overwrites.
func (c *conn) appendAudio(encoded []byte) *openaiwire.Error {
	in, now := &c.in, time.Now()
	data, err := audio.AppendFromBase64(encoded[:0], encoded)
	if err != nil || in.format.Type == "audio/pcm" && len(data)%audio.BytesPerSample != 0 {
		return openaiwire.Invalid(livewire.CodeInvalidAudio, "audio",
			"Invalid 'audio'. Expected base64-encoded whole samples in the session's format.")
	}
	if len(data) == 0 {
		return nil
	}
	if ahead := int(maxAhead.Milliseconds()) * in.format.BytesPerMS(); len(in.queue)+len(data) > ahead { // (own)
		return openaiwire.Invalid(livewire.CodeInvalidAudio, "audio",
			"More than %g seconds of audio wait. Send it in real time.", maxAhead.Seconds())
	}
	if _, busy := in.next(c); !busy && in.due.Before(now) {
		in.due = now
	}
	in.any, in.last = true, now
	in.queue = append(in.queue, data...)
	return nil
}

// tick moves the timeline on by tickMS.
func (c *conn) tick(now time.Time) {
	in := &c.in
	n := in.tickBytes()
	pcm, err := in.format.Decode(&in.pcm, in.queue[:n], "audio")
	// A tick has whole samples, so err is nil.
	if err != nil || in.muted || c.out.fixture != nil {
		pcm = in.quiet
	}
	if in.ms += tickMS; c.opts.Speed >= 0 {
		in.due = now.Add(time.Duration(float64(tickMS*time.Millisecond) / cmp.Or(c.opts.Speed, 1)))
	}
	c.opts.Stats.AudioInMS.Add(tickMS)
	var heard *utterance
	var endMS int64
	for _, a := range in.detector.Process(pcm) {
		if a.Started {
			in.speech = &utterance{edge: a.EdgeMS, over: c.out.line != nil}
			if words, known := c.dialogue.Expected(c.knows()); known {
				in.speech.words = wire.Words(words)
			}
		} else if in.speech != nil {
			heard, endMS, in.speech = in.speech, a.EdgeMS, nil
		}
	}
	if in.queue = in.queue[n:]; len(in.queue) == 0 {
		in.queue = nil
	}
	c.follow()
	var reaction []scenario.Step
	if heard != nil {
		reaction = c.understand(heard, endMS)
	}
	c.tell()
	c.react(reaction, 0)
	c.place()
	if f := c.out.filler; f != never && in.ms >= f {
		c.out.filler = never
		c.queue([]scenario.Step{scenario.Say{Text: fillerLine}}, 0)
	}
	if in.ms >= leadMS && (in.ms-leadMS)%livewire.FrameMS == 0 {
		c.frame(in.ms - leadMS)
	}
}

// follow transcribes the speech so far but its last word, and stops the model if the user keeps speaking.
func (c *conn) follow() {
	u := c.in.speech
	if u == nil {
		return
	}
	for ; u.told < len(u.words)-1 && u.edge+int64(u.told)*wordMS < c.in.ms; u.told++ {
		c.in.words = add(c.in.words, slotOf(u.edge+int64(u.told)*wordMS), u.words[u.told])
	}
	if last, _ := c.in.detector.LastMS(); c.out.line != nil && !u.stopped && last-u.edge >= interruptMS {
		u.stopped = true
		c.opts.Stats.Interrupted.Add(1)
		c.stop()
	}
}

// understand transcribes the end of an utterance and returns the reaction to it.
func (c *conn) understand(u *utterance, endMS int64) []scenario.Step {
	c.opts.Stats.Utterances.Add(1)
	h := scenario.Heard{Spoken: true, Duration: time.Duration(endMS-u.edge) * time.Millisecond}
	var turn scenario.Turn
	if c.deaf || u.over && !u.stopped {
		turn.Heard = c.dialogue.Overhear(h, c.knows())
	} else {
		turn = c.dialogue.Hear(h, c.knows())
	}
	c.remember("user", turn.Heard)
	rest := turn.Heard
	if len(u.words) > 0 {
		rest = strings.Join(u.words[u.told:], "")
	}
	c.out.askedAt = slotOf(max(endMS-1, 0))
	if rest != "" {
		c.in.words = add(c.in.words, c.out.askedAt, rest)
	}
	return turn.Steps
}

func (c *conn) tell() {
	for in := &c.in; len(in.words) > 0 && in.words[0].slot+livewire.SlotMS+lagMS <= in.ms; {
		f := in.words[0]
		in.words = in.words[1:]
		c.emit(transcript(livewire.InputTranscript, f))
	}
}

func transcript(kind string, f fragment) openaiwire.ServerEvent {
	return livewire.Reply(kind, "", "start_ms", f.slot, "end_ms", f.slot+livewire.SlotMS, "delta", f.text)
}

// knows is the model's state for an answer.
func (c *conn) knows() scenario.Context {
	return scenario.Context{Instructions: c.sess.Instructions, Memory: c.memory, Delegates: true}
}
