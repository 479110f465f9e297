package openai

import (
	"encoding/json"
	"time"

	"voicegw/sim/wire"
)

// Token rates of audio: recorded, 27 tokens for 2.8 s in, 136 for 6.8 s out.
const (
	inputTokenTime  = 100 * time.Millisecond
	outputTokenTime = 50 * time.Millisecond
)

// reasoningTokens is about the recorded value for a short answer.
const reasoningTokens = 28

type outputTokens struct {
	text   int
	audio  time.Duration
	chunks int
}

func (o *outputTokens) words(string) { o.text++ }

func (o *outputTokens) audioTokens() int {
	return int((o.audio + outputTokenTime - 1) / outputTokenTime)
}

func (o *outputTokens) total() int { return o.text + o.audioTokens() }

type inputTokens struct{ text, audio int }

func (i inputTokens) total() int { return i.text + i.audio }

// countItems counts items as input. Speech of both sides counts by its length, and not also by its transcript.
func countItems(items []*item) (n inputTokens) {
	var audio time.Duration
	for _, it := range items {
		switch it.kind {
		case kindCall:
			n.text += wire.TextTokens(it.name) + len(it.arguments)/4 + 1
		case kindOutput:
			n.text += max(wire.TextTokens(it.output), len(it.output)/4)
		default:
			if it.length > 0 {
				audio += it.length
				continue
			}
			n.text += wire.TextTokens(it.words())
		}
	}
	n.audio = int(audio / inputTokenTime)
	return n
}

func countTools(tools []tool) int {
	if len(tools) == 0 {
		return 0
	}
	b, err := json.Marshal(tools)
	if err != nil { // they were decoded from JSON
		return 0
	}
	return len(b) / 4
}

// cacheStep is the granularity of the cache: the recordings show multiples of 64.
const cacheStep = 64

// account fills in the usage of a response, its keys in the order of the recordings, and returns its tokens.
func (n *spending) account(r *response) int {
	in := n.inputOf[r.obj.ID]
	delete(n.inputOf, r.obj.ID)
	cached := min(n.cached, in.total()) / cacheStep * cacheStep
	cachedAudio := 0
	if cached > in.text {
		cachedAudio = cached - in.text
	}
	reasoning := 0
	if r.reasons && r.out.total() > 0 {
		reasoning = reasoningTokens
	}
	r.out.text += reasoning
	used := in.total() + r.out.total()
	out := object{"text_tokens", r.out.text, "audio_tokens", r.out.audioTokens()}
	if reasoning > 0 {
		out = append(out, "reasoning_tokens", reasoning)
	}
	r.obj.Usage = object{
		"total_tokens", used, "input_tokens", in.total(), "output_tokens", r.out.total(),
		"input_token_details", object{
			"text_tokens", in.text, "audio_tokens", in.audio, "image_tokens", 0, "cached_tokens", cached,
			"cached_tokens_details", object{"text_tokens", cached - cachedAudio, "audio_tokens", cachedAudio, "image_tokens", 0},
		},
		"output_token_details", out,
	}
	n.used += used
	if !r.aside {
		n.cached = in.total()
	}
	return used
}

// tokenLimit is the limit in rate_limits.updated, as recorded.
const tokenLimit = 15_000_000
