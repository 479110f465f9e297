package rest

import (
	"encoding/json"

	"voicegw/sim/wire"
)

// usage counts tokens, its keys in the provider's order.
type usage struct {
	Prompt        int           `json:"prompt_tokens"`
	Completion    int           `json:"completion_tokens"`
	Total         int           `json:"total_tokens"`
	PromptDetails promptDetails `json:"prompt_tokens_details"`
	OutDetails    outDetails    `json:"completion_tokens_details"`
}

type promptDetails struct {
	Cached int `json:"cached_tokens"`
	Audio  int `json:"audio_tokens"`
}

type outDetails struct {
	Reasoning int `json:"reasoning_tokens"`
	Audio     int `json:"audio_tokens"`
	Accepted  int `json:"accepted_prediction_tokens"`
	Rejected  int `json:"rejected_prediction_tokens"`
}

// The cost of a message, of the whole prompt and of an image, in addition to their text.
const (
	perMessage = 3
	perPrompt  = 3
	perImage   = 85
)

func promptTokens(r *chatRequest) int {
	n := perPrompt
	for i := range r.Messages {
		m := &r.Messages[i]
		n += perMessage + wire.TextTokens(m.text) + m.images*perImage
		for _, c := range m.ToolCalls {
			n += wire.TextTokens(c.Function.Name) + len(c.Function.Arguments)/4 + 1
		}
	}
	if len(r.Tools) > 0 {
		if b, err := json.Marshal(r.Tools); err == nil { // they were decoded from JSON
			n += len(b) / 4
		}
	}
	return n
}
