package gemini

import (
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// maxHistory bounds what a conversation remembers; the oldest entries are dropped first.
const maxHistory = 500

// entry is something said, as the model remembers it.
type entry struct {
	role string // user, model, tool
	text string
}

// conversation is the state that outlives a connection: a resumption handle leads back
// to it. One session at a time owns it; the registry ensures that.
type conversation struct {
	// Fixed after the first setup.
	model string
	began time.Time
	ids   *wire.IDs

	// Owned by the session that has it.
	dialogue *scenario.Dialogue
	history  []entry
	// unanswered is what the user wrote since the model last answered.
	unanswered []string
	usage      meter
	answered   bool // the model has answered at least once
}

func (c *conversation) remember(role, text string) {
	if text == "" {
		return
	}
	c.history = append(c.history, entry{role, text})
	if over := len(c.history) - maxHistory; over > 0 {
		c.history = append(c.history[:0:0], c.history[over:]...)
	}
}

// meter counts the tokens of a conversation's past, by modality.
type meter struct {
	text   int
	images int
	speech time.Duration // the user's
}

// Token rates: for audio from the message and token counts of recorded
// sessions; for pictures from the documentation
// (https://ai.google.dev/gemini-api/docs/tokens, read 2026-11-20).
const (
	audioTokensPerSecond = 25
	imageTokens          = 258
)

func audioTokens(d time.Duration) int {
	return int((d*audioTokensPerSecond + time.Second - 1) / time.Second)
}

// spent is the cost of one turn of the model.
type spent struct {
	audio    time.Duration
	text     int // written output and calls
	thoughts int
}

// report arranges the counts as the model's generation does.
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

// counts pairs names with numbers and omits zeros.
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
