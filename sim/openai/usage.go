package openai

import (
	"encoding/json"
	"time"

	"voicegw/internal/openaiwire"
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
		switch it.Type {
		case openaiwire.FunctionCall:
			n.text += wire.TextTokens(it.Name) + len(it.Arguments)/4 + 1
		case openaiwire.FunctionOutput:
			n.text += max(wire.TextTokens(it.Output), len(it.Output)/4)
		default:
			if it.length > 0 {
				audio += it.length
				continue
			}
			n.text += wire.TextTokens(it.Words())
		}
	}
	n.audio = int(audio / inputTokenTime)
	return n
}

func countTools(tools []openaiwire.Tool) int {
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

// account fills in the usage of a response, and returns its tokens.
func (n *spending) account(r *response) int {
	in := r.in
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
	used := openaiwire.Usage{
		InputText: in.text, InputAudio: in.audio, CachedText: cached - cachedAudio, CachedAudio: cachedAudio,
		OutputText: r.out.text, OutputAudio: r.out.audioTokens(), Reasoning: reasoning,
	}
	r.obj.Usage = used
	n.used += used.Total()
	if !r.aside {
		n.cached = in.total()
	}
	return used.Total()
}

// tokenLimit is the limit in rate_limits.updated, as recorded.
const tokenLimit = 15_000_000
