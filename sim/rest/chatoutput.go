package rest

import (
	"encoding/json"

	"voicegw/internal/openaiwire"
	"voicegw/sim/wire"
)

// output makes one answer from its choices, which come one after the other: whole at its end, or piece by piece.
type output struct {
	x *exchange
	// head is what chunks and whole answers have in common: created, model, service_tier and system_fingerprint.
	head              object
	id                string
	usage, obfuscated bool // of a stream
	stream            bool
	whole             []object // the choices, without a stream

	// The choice that is being written.
	index int
	open  bool              // its first chunk has been sent
	alone bool              // it is a single call
	texts map[string]string // its content and refusal
	calls []*callOut
}

func newOutput(x *exchange, r *chatRequest, id string, head object) *output {
	o := &output{x: x, id: id, head: head, stream: r.Stream, obfuscated: true}
	if s := r.StreamOptions; s != nil {
		o.usage, o.obfuscated = s.IncludeUsage, s.IncludeObfuscation == nil || *s.IncludeObfuscation
	}
	return o
}

type callOut struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type object = openaiwire.Object

// chunkEvent and doneEvent are the names of a chunk and of the end in a fault script.
const (
	chunkEvent = "chat.completion.chunk"
	doneEvent  = "[DONE]"
)

// begin is called before anything else of a choice. alone means that the answer is a single call.
func (o *output) begin(index int, alone bool) {
	o.index, o.open, o.alone, o.texts, o.calls = index, false, alone, map[string]string{}, nil
	if o.stream && index == 0 {
		o.x.Stream()
	}
}

// send sends one chunk. If usage was requested, every chunk but the last has usage null.
func (o *output) send(choices []object, usage any) {
	chunk := append(object{"id", o.id, "object", chunkEvent}, o.head...)
	chunk = append(chunk, "choices", choices)
	if o.usage {
		chunk = append(chunk, "usage", usage)
	}
	if o.obfuscated { // hides the length of the pieces
		chunk = append(chunk, "obfuscation", o.x.IDs.Base62(8))
	}
	if b, err := json.Marshal(chunk); err == nil { // strings and numbers can always be encoded
		o.x.Event(chunkEvent, b)
	}
}

func (o *output) delta(d object, reason any) {
	o.send([]object{{"index", o.index, "delta", d, "logprobs", nil, "finish_reason", reason}}, nil)
}

// role sends the first chunk of a choice, which names the role.
func (o *output) role(content any) {
	if !o.open {
		o.open = true
		o.delta(object{"role", "assistant", "content", content, "refusal", nil}, nil)
	}
}

// text adds a piece of the text or, named "refusal", of the refusal.
func (o *output) text(name, piece string) {
	if !o.stream {
		o.texts[name] += piece
		return
	}
	if name == "refusal" {
		o.role(nil)
	} else {
		o.role("")
	}
	o.delta(object{name, piece}, nil)
}

func (o *output) call(i int, id, name string) {
	if !o.stream {
		call := &callOut{ID: id, Type: "function"}
		call.Function.Name = name
		o.calls = append(o.calls, call)
		return
	}
	call := object{"index", i}
	if id != "" {
		call = append(call, "id", id)
	}
	call = append(call, "type", "function", "function", object{"name", name, "arguments", ""})
	if o.alone && !o.open { // a single call comes in the chunk with the role
		o.open = true
		o.delta(object{"role", "assistant", "content", nil, "tool_calls", []object{call}, "refusal", nil}, nil)
		return
	}
	o.role(nil)
	o.delta(object{"tool_calls", []object{call}}, nil)
}

func (o *output) arguments(i int, piece string) {
	if !o.stream {
		o.calls[i].Function.Arguments += piece
		return
	}
	o.delta(object{"tool_calls", []object{{"index", i, "function", object{"arguments", piece}}}}, nil)
}

func (o *output) endChoice(reason string) {
	if o.stream {
		o.role("")
		o.delta(object{}, reason)
		return
	}
	content, said := o.texts["content"]
	refusal, refused := o.texts["refusal"]
	message := object{"role", "assistant", "content", nil}
	if said || !refused && len(o.calls) == 0 {
		message[3] = content
	}
	if len(o.calls) > 0 {
		message = append(message, "tool_calls", o.calls)
	}
	message = append(message, "refusal", openaiwire.Nullable(refusal), "annotations", []string{})
	o.whole = append(o.whole, object{"index", o.index, "message", message, "logprobs", nil, "finish_reason", reason})
}

// end sends the rest, with the tokens of the prompt and of the answer.
func (o *output) end(prompt, completion int) {
	usage := object{"prompt_tokens", prompt, "completion_tokens", completion, "total_tokens", prompt + completion,
		"prompt_tokens_details", object{"cached_tokens", 0, "audio_tokens", 0},
		"completion_tokens_details", object{"reasoning_tokens", 0, "audio_tokens", 0, "accepted_prediction_tokens", 0,
			"rejected_prediction_tokens", 0}}
	if !o.stream {
		answer := append(object{"id", o.id, "object", "chat.completion"}, o.head[:4]...)
		answer = append(answer, "choices", o.whole, "usage", usage)
		o.x.JSON(append(answer, o.head[4:]...))
		return
	}
	if o.usage {
		o.send([]object{}, usage)
	}
	o.x.Event(doneEvent, []byte(doneEvent))
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
