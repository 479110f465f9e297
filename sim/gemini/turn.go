package gemini

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

type phase int

const (
	generating phase = iota
	waiting          // for the results of calls that block
	playing          // everything is sent; the user is still listening
)

// turn is one answer of the model, from the input to turnComplete. Owned by its session.
type turn struct {
	phase  phase
	spoken bool // begun by speech
	steps  []scenario.Step

	wait      time.Time // nothing happens before
	line      *voice.Delivery
	lineBegan time.Time
	playEnd   time.Time

	chunks  int
	began   bool // the first line was begun
	opened  bool // Vertex: the transcription was opened
	called  bool
	thought bool
	spent   spent
	said    strings.Builder
	late    []plannedCall
}

func (t *turn) due() (time.Time, bool) {
	switch t.phase {
	case generating:
		if t.line != nil {
			if d, ok := t.line.Due(); ok {
				return latest(t.wait, t.lineBegan.Add(d)), true
			}
		}
		return t.wait, true
	case playing:
		return t.playEnd, true
	}
	return time.Time{}, false
}

func latest(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func (s *session) begin(now time.Time, plan scenario.Turn, spoken bool) {
	if len(plan.Steps) == 0 || s.out.Closed() {
		return
	}
	s.turns++
	s.conv.answered = true
	s.opts.Stats.Responses.Add(1)
	t := &turn{steps: plan.Steps, spoken: spoken, playEnd: now}
	s.turn = t
	s.sendState(now)
	s.commitAll(now, s.out.At(scenario.Point{At: scenario.AtTurn, N: s.turns, Turn: s.turns}))
	s.open(t)
	s.advance(now)
}

func (s *session) open(t *turn) {
	h := s.cfg.habits
	if h.emptyMessages {
		s.send(serverFrame{})
	}
	if !h.emptyContent {
		return
	}
	if h.gen == gen31 && t.spoken {
		// Recorded twice in spoken turns, both before calls and before speech.
		s.content(serverContent{})
	}
	f := serverFrame{ServerContent: &serverContent{}}
	if h.gen == gen31 && t.spoken && len(s.cfg.tools) == 0 && !t.called {
		// Prompt counts came here in a recorded spoken turn, but neither in typed turns nor in sessions with tools.
		f.UsageMetadata = h.report(s.conv.usage, s.cfg.instructionTokens(), spent{})
	}
	s.send(f)
}

func (s *session) advance(now time.Time) {
	for s.turn != nil && !s.out.Closed() {
		t := s.turn
		switch {
		case t.wait.After(now) || t.phase == waiting:
			return
		case t.phase == playing:
			if t.playEnd.After(now) {
				return
			}
			s.complete(now)
		case t.line != nil:
			if !s.deliver(now, t) {
				return
			}
		case len(t.steps) == 0:
			s.finish(t)
		default:
			step := t.steps[0]
			t.steps = t.steps[1:]
			s.step(now, step)
		}
	}
}

func (s *session) step(now time.Time, step scenario.Step) {
	switch step := step.(type) {
	case scenario.Say:
		s.say(now, s.turn, step)
	case scenario.Calls:
		s.sendCalls(now, step)
	case scenario.Wait:
		s.turn.wait = now.Add(step.For)
	case scenario.Fault:
		s.commitAll(now, s.out.Do([]scenario.Fault{step}))
	case scenario.End:
		s.out.Close(step.Code, step.Reason)
	}
}

func (s *session) say(now time.Time, t *turn, say scenario.Say) {
	h := s.cfg.habits
	if s.cfg.thoughts && !t.thought && !t.called && say.Text != "" {
		t.thought = true
		t.spent.thoughts = 24 + len(say.Text)%16
		s.content(serverContent{ModelTurn: s.cfg.modelTurn(part{Text: thought(say.Text), Thought: true})})
	}
	o := voice.DeliveryOptions{
		ChunkMS: cmp.Or(s.opts.ChunkMS, h.chunkMS), FirstAudioMS: s.opts.FirstAudioMS, Speed: s.opts.Speed,
	}
	if t.began {
		o.FirstAudioMS = -1
	}
	t.began = true
	line := voice.Line{BytesPerMS: outputRate * 2 / 1000}
	switch {
	case s.cfg.text:
		line.Words = textWords(say.Text)
	case say.Text == "":
		line.Audio = make([]byte, int(say.Silence.Milliseconds())*line.BytesPerMS)
	default:
		u := s.speak(s.cfg.voiceName, say.Text)
		line.Audio, line.Words = u.PCM, group(u.Words, h.wordsPerPiece)
		o.WordsWithAudio = h.together
	}
	t.line, t.lineBegan = voice.NewDelivery(line, o), now
}

func thought(text string) string {
	const heading = 4
	words := strings.Fields(text)
	return "**Considering " + strings.Join(words[:min(len(words), heading)], " ") + "**\n\n" +
		"I will answer in a short, spoken way that fits what was asked.\n\n\n"
}

func textWords(text string) []voice.Word {
	const perWord = 40 * time.Millisecond
	var out []voice.Word
	for i, w := range wire.Words(text) {
		out = append(out, voice.Word{Text: w, Start: time.Duration(i) * perWord})
	}
	return out
}

func group(words []voice.Word, n int) []voice.Word {
	if n <= 1 {
		return words
	}
	var out []voice.Word
	for i, w := range words {
		if i%n == 0 {
			out = append(out, w)
			continue
		}
		out[len(out)-1].Text += w.Text
	}
	return out
}

func (s *session) deliver(now time.Time, t *turn) bool {
	due, ok := t.line.Due()
	if !ok {
		s.cfg.endLine(t)
		return true
	}
	if t.lineBegan.Add(due).After(now) {
		return false
	}
	p, _ := t.line.Next()
	if len(p.Audio) > 0 {
		t.chunks++
		s.commitAll(now, s.out.At(scenario.Point{At: scenario.AtChunk, N: t.chunks, Turn: s.turns}))
		if s.turn != t || s.out.Closed() {
			return true
		}
	}
	s.sendPart(t, p)
	if length := p.To - p.From; length > 0 {
		t.spent.audio += length
		s.opts.Stats.AudioOutMS.Add(length.Milliseconds())
		if s.opts.PlaybackSpeed > 0 { // that of the imagined player
			length = time.Duration(float64(length) / s.opts.PlaybackSpeed)
		} else {
			length = 0
		}
		t.playEnd = latest(t.playEnd, t.lineBegan.Add(due)).Add(length)
	}
	return true
}

// endLine cuts a line after the sent part, which is the part that the model remembers.
func (c *config) endLine(t *turn) {
	text := t.line.Text(t.line.Sent())
	if c.text {
		text = t.line.SentText()
		t.spent.text += wire.TextTokens(text)
	}
	t.said.WriteString(text)
	t.line.Stop()
	t.line = nil
}

func (s *session) sendPart(t *turn, p voice.Part) {
	h := s.cfg.habits
	if s.cfg.text {
		for _, w := range p.Words {
			s.content(serverContent{ModelTurn: s.cfg.modelTurn(part{Text: w.Text})})
		}
		return
	}
	var words *transcription
	if s.cfg.OutputTranscription != nil && len(p.Words) > 0 {
		var text strings.Builder
		for _, w := range p.Words {
			text.WriteString(w.Text)
		}
		words = &transcription{Text: text.String()}
		if h.vertex {
			s.openTranscription(t)
		}
	}
	if words != nil && !h.together {
		for _, w := range p.Words {
			s.content(serverContent{OutputTranscription: &transcription{Text: w.Text}})
		}
		words = nil
	}
	if len(p.Audio) == 0 {
		return
	}
	if h.emptyMessages {
		s.send(serverFrame{})
	}
	blob := part{InlineData: &inlineData{MIMEType: h.audioMIME, Data: audioMark}}
	s.sendAudio(serverFrame{ServerContent: &serverContent{ModelTurn: s.cfg.modelTurn(blob), OutputTranscription: words}}, p.Audio)
}

// openTranscription is Vertex's announcement of a transcript, both before speech and before calls.
func (s *session) openTranscription(t *turn) {
	if s.cfg.OutputTranscription != nil && !t.opened {
		t.opened = true
		s.content(serverContent{OutputTranscription: &transcription{}})
	}
}

func (c *config) modelTurn(p part) *modelTurn {
	m := &modelTurn{Parts: []part{p}}
	if c.habits.role {
		m.Role = "model"
	}
	return m
}

func (s *session) finish(t *turn) {
	if s.cfg.habits.vertex && t.opened {
		s.content(serverContent{OutputTranscription: &transcription{Finished: true}})
	}
	t.phase = playing
	s.content(serverContent{GenerationComplete: true})
}

func (s *session) complete(now time.Time) {
	t := s.turn
	s.endTurn(now, t, false)
	s.scheduleLate(now, t)
	s.next(now)
}

func (s *session) scheduleLate(now time.Time, t *turn) {
	for _, p := range t.late {
		// The turn does not wait for a call that comes so late: its result starts a new turn.
		p.async = true
		s.after(now, p.Late, func(now time.Time) {
			s.issue(now, p)
			for range p.Repeat + 1 {
				s.send(serverFrame{ToolCall: &toolCall{FunctionCalls: []functionCall{p.frame()}}})
			}
		})
	}
}

func (s *session) interrupt(now time.Time) {
	t := s.turn
	if t == nil {
		return
	}
	s.opts.Stats.Interrupted.Add(1)
	s.content(serverContent{Interrupted: true})
	s.cancelBlocking()
	s.endTurn(now, t, true)
}

func (s *session) endTurn(now time.Time, t *turn, interrupted bool) {
	if t.line != nil {
		s.cfg.endLine(t)
	}
	h := s.cfg.habits
	u := h.report(s.conv.usage, s.cfg.instructionTokens(), t.spent)
	if interrupted && h.emptyInterruptedUsage {
		u = &usageMetadata{}
	}
	c := serverContent{TurnComplete: true}
	if h.status && (h.statusAlways || len(s.cfg.tools) > 0) {
		c.InteractionStatus = "IDLE"
		if len(s.conv.calls.open(true)) > 0 || s.ready || len(t.late) > 0 {
			c.InteractionStatus = "IN_PROGRESS"
		}
	}
	s.send(serverFrame{ServerContent: &c, UsageMetadata: u})
	s.conv.usage.text += wire.TextTokens(t.said.String()) + t.spent.text
	s.conv.remember("model", t.said.String())
	s.turn = nil
	s.sendState(now)
}

func (c *config) instructionTokens() int {
	n := wire.TextTokens(c.instructions)
	for _, t := range c.tools {
		n += wire.TextTokens(t.Name) + wire.TextTokens(t.Description) + len(t.Parameters)/8
	}
	return n
}
