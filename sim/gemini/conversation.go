package gemini

import (
	"slices"
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// maxHistory bounds a conversation's history; the oldest quarter is dropped at a time, so that snapshots share most
// of the list.
const maxHistory = 500

// origin is the shared part of a conversation's snapshots. Only one session of them is open at a time; the registry
// ensures that.
type origin struct {
	// Fixed after the first setup.
	model string
	began time.Time

	// Owned by the open session.
	ids *wire.IDs
	// atResume are the faults of the next resume.
	atResume []scenario.Fault
}

type conversation struct {
	*origin

	// Owned by the session that has it.
	dialogue *scenario.Dialogue
	history  []scenario.Memory // the elements never change
	calls    calls
	// unanswered is the user's text without an answer; it is not in history yet.
	unanswered []string
	usage      meter
	answered   bool // the model has answered at least once
}

func (c *conversation) remember(who, text string) {
	if text == "" {
		return
	}
	c.history = append(c.history, scenario.Memory{Who: who, Text: text})
	if len(c.history) > maxHistory {
		c.history = append(c.history[:0:0], c.history[maxHistory/4:]...)
	}
}

func (c *conversation) takeUnanswered() {
	for _, text := range c.unanswered {
		c.remember("user", text)
	}
	c.unanswered = nil
}

func (c *conversation) forget() {
	*c = conversation{origin: c.origin, dialogue: c.dialogue.New()}
}

// snapshot is a conversation as it was when a handle was issued. It never changes.
type snapshot struct {
	conversation
	open map[*call]bool // the calls that waited for a result
}

// snapshot returns the conversation as it is now. History and calls are shared up to here: the
// conversation only appends to them.
func (c *conversation) snapshot() snapshot {
	s := snapshot{conversation: *c, open: map[*call]bool{}}
	s.dialogue = c.dialogue.Clone()
	s.history = slices.Clip(c.history)
	s.unanswered = slices.Clone(c.unanswered)
	s.calls.all = slices.Clip(c.calls.all)
	for _, k := range c.calls.all {
		if k.state == callOpen {
			s.open[k] = true
		}
	}
	return s
}

// resumed returns the conversation that continues from a snapshot. A call that was open then is open again. It no
// longer blocks the model, whose answer is lost: its result is spoken about in a turn of its own.
func (s *snapshot) resumed() *conversation {
	c := s.conversation
	c.dialogue = s.dialogue.Clone()
	c.unanswered = slices.Clone(s.unanswered)
	c.calls.all = make([]*call, len(s.calls.all))
	for i, k := range s.calls.all {
		if s.open[k] {
			c.calls.all[i] = &call{id: k.id, name: k.name, async: true}
		} else {
			c.calls.all[i] = &call{id: k.id, name: k.name, state: callAnswered, taken: true}
		}
	}
	return &c
}

type meter struct {
	text   int
	images int
	speech time.Duration // the user's
}

// Token rates: for audio from the message and token counts of recorded sessions; for pictures from the documentation
// (https://ai.google.dev/gemini-api/docs/tokens, read 2026-11-20).
const (
	audioTokensPerSecond = 25
	imageTokens          = 258
)

func audioTokens(d time.Duration) int {
	return int((d*audioTokensPerSecond + time.Second - 1) / time.Second)
}

type spent struct {
	audio    time.Duration
	text     int // written output and calls
	thoughts int
}

func (h habits) report(m meter, instructions int, s spent) *usageMetadata {
	u := &usageMetadata{ThoughtsTokens: s.thoughts}
	text, unlisted := m.text+instructions+h.overhead, 0
	if h.gen != gen25 {
		// The newer models count more than they list.
		unlisted = h.overhead / 3
		text -= unlisted
	}
	u.PromptDetails = counts("TEXT", text, "AUDIO", audioTokens(m.speech), "IMAGE", m.images*imageTokens)
	u.PromptTokens = text + unlisted + audioTokens(m.speech) + m.images*imageTokens
	u.ResponseTokens = s.text + audioTokens(s.audio)
	if h.gen == gen25 || s.audio == 0 {
		u.ResponseDetails = counts("TEXT", s.text, "AUDIO", audioTokens(s.audio))
	} else {
		u.ResponseDetails = counts("AUDIO", audioTokens(s.audio))
	}
	u.TotalTokens = u.PromptTokens + u.ResponseTokens
	if h.vertex {
		u.CandidatesTokens, u.ResponseTokens = u.ResponseTokens, 0
		u.CandidateDetails, u.ResponseDetails = u.ResponseDetails, nil
	}
	return u
}

func counts(pairs ...any) []modalityCount {
	var out []modalityCount
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		if n, _ := pairs[i+1].(int); n > 0 {
			out = append(out, modalityCount{Modality: name, Tokens: n})
		}
	}
	return out
}
