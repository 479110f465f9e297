package gemini

import (
	"google.golang.org/genai"

	"voicegw/transport"
)

// usageMetadata is the report of both services; Vertex names the response "candidates".
type usageMetadata struct {
	genai.UsageMetadata
	CandidatesTokenCount   int32                       `json:"candidatesTokenCount"`
	CandidatesTokenDetails []*genai.ModalityTokenCount `json:"candidatesTokensDetails"`
}

// tokens converts the counts into the gateway's form. The totals are the provider's:
// they include more than the details list, and the difference is not attributed.
// The response's count does not include thoughts.
func (u *usageMetadata) tokens() transport.Tokens {
	t := transport.Tokens{
		Input:         int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount),
		Output:        int64(u.ResponseTokenCount) + int64(u.CandidatesTokenCount),
		OutputThought: int64(u.ThoughtsTokenCount),
	}
	var other int64
	for _, details := range [][]*genai.ModalityTokenCount{u.PromptTokensDetails, u.ToolUsePromptTokensDetails} {
		addByModality(details, &t.InputText, &t.InputAudio, &t.InputOther)
	}
	for _, details := range [][]*genai.ModalityTokenCount{u.ResponseTokensDetails, u.CandidatesTokenDetails} {
		addByModality(details, &t.OutputText, &t.OutputAudio, &other)
	}
	addByModality(u.CacheTokensDetails, &t.CachedText, &t.CachedAudio, &other)
	if len(u.CacheTokensDetails) == 0 {
		// Cached tokens without details are mostly text; they cannot exceed the input.
		t.CachedText = min(int64(u.CachedContentTokenCount), t.InputText)
	}
	t.CachedText, t.CachedAudio = min(t.CachedText, t.InputText), min(t.CachedAudio, t.InputAudio)
	return t
}

func addByModality(details []*genai.ModalityTokenCount, text, audio, other *int64) {
	for _, d := range details {
		if d == nil {
			continue
		}
		n := int64(d.TokenCount)
		switch d.Modality {
		case genai.MediaModalityText:
			*text += n
		case genai.MediaModalityAudio:
			*audio += n
		default:
			*other += n
		}
	}
}

// meter computes deltas from the reports within one turn.
type meter struct {
	running bool // each report of a turn includes the earlier ones of that turn
	seen    transport.Tokens
}

func (m *meter) add(now transport.Tokens) transport.Tokens {
	if !m.running {
		return now
	}
	var delta transport.Tokens
	grow := func(seen *int64, now int64) int64 {
		d := max(now-*seen, 0)
		*seen += d
		return d
	}
	delta.Input = grow(&m.seen.Input, now.Input)
	delta.Output = grow(&m.seen.Output, now.Output)
	delta.InputText = grow(&m.seen.InputText, now.InputText)
	delta.InputAudio = grow(&m.seen.InputAudio, now.InputAudio)
	delta.InputOther = grow(&m.seen.InputOther, now.InputOther)
	delta.CachedText = grow(&m.seen.CachedText, now.CachedText)
	delta.CachedAudio = grow(&m.seen.CachedAudio, now.CachedAudio)
	delta.OutputText = grow(&m.seen.OutputText, now.OutputText)
	delta.OutputAudio = grow(&m.seen.OutputAudio, now.OutputAudio)
	delta.OutputThought = grow(&m.seen.OutputThought, now.OutputThought)
	return delta
}

// turnOver forgets the turn: the next one starts from zero.
func (m *meter) turnOver() { m.seen = transport.Tokens{} }
