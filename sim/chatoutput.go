package sim

import (
	"encoding/json"

	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

type object = openaiwire.Object

type callOut struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chunkEvent and doneEvent are the names of a chunk and of the end in a fault script.
const (
	chunkEvent = "chat.completion.chunk"
	doneEvent  = "[DONE]"
)

// send sends one chunk. If usage was requested, every chunk but the last has usage null.
func (s *speaker) send(choices []object, usage any) {
	chunk := append(object{"id", s.id, "object", chunkEvent}, s.head...)
	chunk = append(chunk, "choices", choices)
	o := s.r.StreamOptions
	if o != nil && o.IncludeUsage {
		chunk = append(chunk, "usage", usage)
	}
	if o == nil || o.IncludeObfuscation == nil || *o.IncludeObfuscation { // hides the length of the pieces
		chunk = append(chunk, "obfuscation", s.x.IDs.Base62(8))
	}
	if b, err := json.Marshal(chunk); err == nil { // strings and numbers can always be encoded
		s.x.Event(chunkEvent, b)
	}
}

func (s *speaker) delta(d object, reason any) {
	s.send([]object{{"index", s.choice.index, "delta", d, "logprobs", nil, "finish_reason", reason}}, nil)
}

// open sends the first chunk of a choice, which names the role.
func (s *speaker) open(content any) {
	if !s.choice.opened {
		s.choice.opened = true
		s.delta(object{"role", "assistant", "content", content, "refusal", nil}, nil)
	}
}

// text writes a piece of the content or of the refusal.
func (s *speaker) text(name, piece string) {
	s.choice.texts[name] += piece
	switch {
	case !s.r.Stream:
		return
	case name == "refusal":
		s.open(nil)
	default:
		s.open("")
	}
	s.delta(object{name, piece}, nil)
}

// call writes a call, piece by piece.
func (s *speaker) call(call scenario.Call) {
	if !s.spend() {
		return
	}
	c := &s.choice
	index := len(c.calls)
	made := &callOut{ID: call.ID, Type: "function"}
	made.Function.Name = call.Name
	c.calls = append(c.calls, made)
	if s.r.Stream {
		s.openCall(index, call)
	}
	for _, piece := range wire.ArgumentPieces(string(call.Args)) {
		if s.x.over || !s.spend() {
			return
		}
		s.x.Pause(s.server.between)
		made.Function.Arguments += piece
		if s.r.Stream {
			s.delta(object{"tool_calls", []object{{"index", index, "function", object{"arguments", piece}}}}, nil)
		}
	}
}

func (s *speaker) openCall(index int, call scenario.Call) {
	first := object{"index", index}
	if call.ID != "" {
		first = append(first, "id", call.ID)
	}
	first = append(first, "type", "function", "function", object{"name", call.Name, "arguments", ""})
	if s.choice.alone && !s.choice.opened { // a single call comes in the chunk with the role
		s.choice.opened = true
		s.delta(object{"role", "assistant", "content", nil, "tool_calls", []object{first}, "refusal", nil}, nil)
		return
	}
	s.open(nil)
	s.delta(object{"tool_calls", []object{first}}, nil)
}

func (s *speaker) endChoice() {
	c := &s.choice
	if s.r.Stream {
		s.open("")
		s.delta(object{}, c.reason)
		return
	}
	content, said := c.texts["content"]
	refusal, refused := c.texts["refusal"]
	message := object{"role", "assistant", "content", nil}
	if said || !refused && len(c.calls) == 0 {
		message[3] = content
	}
	if len(c.calls) > 0 {
		message = append(message, "tool_calls", c.calls)
	}
	message = append(message, "refusal", openaiwire.Nullable(refusal), "annotations", []string{})
	s.whole = append(s.whole, object{"index", c.index, "message", message, "logprobs", nil, "finish_reason", c.reason})
}

// end sends the rest of the answer.
func (s *speaker) end() {
	prompt := promptTokens(s.r)
	usage := object{"prompt_tokens", prompt, "completion_tokens", s.tokens, "total_tokens", prompt + s.tokens,
		"prompt_tokens_details", object{"cached_tokens", 0, "audio_tokens", 0},
		"completion_tokens_details", object{"reasoning_tokens", 0, "audio_tokens", 0, "accepted_prediction_tokens", 0,
			"rejected_prediction_tokens", 0}}
	if !s.r.Stream {
		answer := append(object{"id", s.id, "object", "chat.completion"}, s.head[:4]...)
		answer = append(answer, "choices", s.whole, "usage", usage)
		s.x.JSON(append(answer, s.head[4:]...))
		return
	}
	if o := s.r.StreamOptions; o != nil && o.IncludeUsage {
		s.send([]object{}, usage)
	}
	s.x.Event(doneEvent, []byte(doneEvent))
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
