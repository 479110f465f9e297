package live

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/audio"
	"voicegw/internal/livewire"
	"voicegw/prompts"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// The model's lines while work is delegated, as recorded, and with the fault undelegated.
const (
	fillerLine = "Okay, checking now."
	claimLine  = "All right, I have booked it for you."
)

// output is the track that goes out. Its clock is leadMS behind that of the input.
type output struct {
	steps   []queued // not yet carried out
	line    *line    // being spoken; nil without one
	freeAt  int64    // when the next line may begin
	askedAt int64    // the place of the end of the last utterance
	filler  int64    // when the filler is due, on the clock of the input; never without one
	fixture *line    // played instead; nil without one
	turn    int      // reactions
	chunks  int      // of the turn
	quiet   []byte   // a piece of silence in the session's format
	silent  []byte   // the event with it, for a track without times
}

type queued struct {
	scenario.Step

	at int64
}

type line struct {
	audio []byte
	words []fragment // not yet sent
	said  strings.Builder
	id    string // of the event that asked for a fixture
	begun bool   // the fixture was announced
}

// react begins a turn of the model with these steps, if there are any.
func (c *conn) react(steps []scenario.Step, afterMS int64) {
	if len(steps) == 0 {
		return
	}
	c.out.turn++
	c.out.chunks = 0
	c.opts.Stats.Responses.Add(1)
	c.Commit(c.w.At(scenario.Point{At: scenario.AtTurn, Turn: c.out.turn, N: c.out.turn}))
	c.queue(steps, afterMS)
}

// queue adds steps. A delegation comes before the words that announce it.
func (c *conn) queue(steps []scenario.Step, afterMS int64) {
	at := c.in.ms - leadMS + afterMS
	first := len(c.out.steps)
	for _, s := range steps {
		i := len(c.out.steps)
		if _, calls := s.(scenario.Calls); calls {
			for i > first && isSay(c.out.steps[i-1].Step) {
				i--
			}
		}
		c.out.steps = slices.Insert(c.out.steps, i, queued{s, at})
	}
}

func isSay(s scenario.Step) bool {
	_, is := s.(scenario.Say)
	return is
}

var (
	greet   = regexp.MustCompile(`(?i)\bgreet`)
	noGreet = regexp.MustCompile(`(?i)\bnot (?:to )?greet`)
)

// instructed answers appended instructions: a greeting begins the scenario, everything else is like typed text.
func (c *conn) instructed(text string) scenario.Turn {
	text = prompts.EnteredText(text)
	if c.out.turn == 0 && greet.MatchString(text) && !noGreet.MatchString(text) {
		return c.dialogue.Continue(c.knows())
	}
	c.out.askedAt = slotOf(c.in.ms)
	return c.dialogue.Hear(scenario.Heard{Text: text}, c.knows())
}

// stop silences the model and drops its unsaid words.
func (c *conn) stop() {
	c.finish()
	c.out.steps = nil
}

func (c *conn) finish() {
	if c.out.line != nil {
		c.remember("model", c.out.line.said.String())
		c.out.line = nil
	}
}

// frame sends the next piece of the track, which begins at now on the clock of the output.
func (c *conn) frame(now int64) {
	out := &c.out
	size := livewire.FrameMS * c.in.format.BytesPerMS()
	l := out.fixture
	switch {
	case l == nil:
		c.advance(now)
		l = out.line
	case !l.begun:
		l.begun = true
		c.stop()
		c.acknowledge(livewire.FixturePlaying, l.id)
	}
	if l == nil {
		c.sendAudio(now, nil, size)
		return
	}
	piece := l.audio[:min(size, len(l.audio))]
	l.audio = l.audio[len(piece):]
	for len(l.words) > 0 && (l.words[0].slot <= now || len(l.audio) == 0) {
		c.emit(transcript(livewire.OutputTranscript, l.words[0]))
		l.said.WriteString(l.words[0].text)
		l.words = l.words[1:]
	}
	c.sendAudio(now, piece, size)
	switch {
	case len(l.audio) > 0:
	case l == out.fixture:
		out.fixture = nil
		c.acknowledge(livewire.FixturePlayed, l.id)
	case l == out.line:
		c.finish()
		out.freeAt = now + livewire.FrameMS + gapMS
	}
}

// sendAudio sends a piece of the track, filled up with silence.
func (c *conn) sendAudio(now int64, sound []byte, size int) {
	out := &c.out
	if out.quiet == nil {
		out.quiet = c.in.format.Encode(new([]byte), make([]byte, audio.Bytes(c.in.format.Hz(), livewire.FrameMS*time.Millisecond)))
		out.silent = livewire.AppendAudioDelta(nil, out.quiet, never)
	}
	if len(sound) > 0 {
		out.chunks++
		c.opts.Stats.AudioOutMS.Add(livewire.FrameMS)
		c.Commit(c.w.At(scenario.Point{At: scenario.AtChunk, Turn: out.turn, N: out.chunks}))
	}
	if time.Now().Before(c.noAudio) {
		return
	}
	event := out.silent
	if len(sound) > 0 || c.azure {
		start := int64(never)
		if c.azure {
			start = now
		}
		sound = append(slices.Clip(sound), out.quiet[min(len(sound), size):]...)
		event = livewire.AppendAudioDelta(make([]byte, 0, len(sound)*4/3+100), sound, start)
	}
	c.later.Sent(c.w.Send(livewire.AudioDelta, out.turn, event))
}

// advance carries out the steps that are due, until a line is being spoken.
func (c *conn) advance(now int64) {
	out := &c.out
	for out.line == nil && len(out.steps) > 0 && out.steps[0].at <= now && !c.w.Closed() {
		step := out.steps[0].Step
		say, speaks := step.(scenario.Say)
		if speaks = speaks && say.Text != ""; speaks && (now < out.freeAt || c.in.speech != nil) {
			return
		}
		out.steps = out.steps[1:]
		switch s := step.(type) {
		case scenario.Say:
			if speaks {
				out.line = c.speak(s.Text, now)
			} else {
				c.wait(now + s.Silence.Milliseconds())
			}
		case scenario.Wait:
			c.wait(now + s.For.Milliseconds())
		case scenario.Calls:
			c.delegate(s.Calls[0])
		case scenario.Fault:
			c.Commit(c.w.Do([]scenario.Fault{s}))
		case scenario.End:
			c.close(s)
		}
	}
}

func (c *conn) wait(until int64) {
	for i := range c.out.steps {
		c.out.steps[i].at = max(c.out.steps[i].at, until)
	}
}

// close is the end that a scenario wants: with one of the wire's reasons that of the session, else only of the socket.
func (c *conn) close(s scenario.End) {
	switch s.Reason {
	case livewire.ReasonContent, livewire.ReasonExpired, livewire.ReasonHangup, livewire.ReasonLost, livewire.ReasonRequested:
		c.end(s.Reason, "")
	default:
		c.w.Close(s.Code, s.Reason)
	}
}

// speak returns a line that begins at a time of the output's clock.
func (c *conn) speak(text string, now int64) *line {
	v := c.sess.Audio.Output.Voice
	u := c.lines.Speak(text, voice.Options{Rate: c.in.format.Hz(), Voice: v.Name + v.ID})
	l := &line{audio: c.in.format.Encode(new([]byte), u.PCM)}
	for _, w := range u.Words {
		l.words = add(l.words, slotOf(now+w.Start.Milliseconds()), w.Text)
	}
	return l
}

// delegate hands work over, whichever calls the scenario would make, and lets the model say so if nothing else does.
func (c *conn) delegate(call scenario.Call) {
	c.calls++
	c.opts.Stats.Calls.Add(1)
	actions := append(c.w.At(scenario.Point{At: scenario.AtCall, Turn: c.out.turn, N: c.calls}), c.onCall...)
	c.onCall = nil
	call.ID = "" // that of a call
	claims := false
	for _, a := range wire.PlanCall(&call, c.ids.New("item"), actions) {
		if a.Kind == scenario.Undelegated {
			claims = true
		} else {
			c.Commit([]scenario.Fault{a})
		}
	}
	if claims {
		c.queue([]scenario.Step{scenario.Say{Text: claimLine}}, 0)
		return
	}
	if !slices.ContainsFunc(c.out.steps, func(q queued) bool { return isSay(q.Step) }) {
		c.out.filler = c.in.ms + int64(c.sess.Delegation.AcknowledgementDelayMS)
	}
	if call.ID != "" {
		c.delegated = append(c.delegated, call.ID)
	}
	c.delegated = c.delegated[max(len(c.delegated)-maxDelegated, 0):]
	offset := c.out.askedAt
	announce := func() {
		for range call.Repeat + 1 {
			c.emit(livewire.Delegate(call.ID, offset))
		}
	}
	if call.Late > 0 {
		c.later.After(call.Late, announce)
	} else {
		announce()
	}
}
