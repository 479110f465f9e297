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

	// choice is the choice that is being written.
	choice choiceOut
	open   bool        // its first chunk has been sent
	alone  bool        // it is a single call
	whole  []choiceOut // nil for a stream
}

func newOutput(x *exchange, r *chatRequest, id string, head object) *output {
	o := &output{x: x, id: id, head: head, obfuscated: true}
	if !r.Stream {
		o.whole = []choiceOut{}
	} else if s := r.StreamOptions; s != nil {
		o.usage, o.obfuscated = s.IncludeUsage, s.IncludeObfuscation == nil || *s.IncludeObfuscation
	}
	return o
}

type callOut struct {
	ID       string      `json:"id,omitempty"`
	Type     string      `json:"type"`
	Function functionOut `json:"function"`
}

type functionOut struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type messageOut struct {
	Role        string    `json:"role"`
	Content     *string   `json:"content"`
	ToolCalls   []callOut `json:"tool_calls,omitempty"`
	Refusal     *string   `json:"refusal"`
	Annotations []string  `json:"annotations"`
}

type choiceOut struct {
	Index    int        `json:"index"`
	Message  messageOut `json:"message"`
	Logprobs *struct{}  `json:"logprobs"`
	Finish   string     `json:"finish_reason"`
}

type object = openaiwire.Object

// chunkEvent and doneEvent are the names of a chunk and of the end in a fault script.
const (
	chunkEvent = "chat.completion.chunk"
	doneEvent  = "[DONE]"
)

// begin is called before anything else of a choice. alone means that the answer is a single call.
func (o *output) begin(index int, alone bool) {
	o.choice = choiceOut{Index: index, Message: messageOut{Role: "assistant", Annotations: []string{}}}
	o.open, o.alone = false, alone
	if o.whole == nil && index == 0 {
		o.x.Stream()
	}
}

// send sends one chunk. If usage was requested, every chunk but the last has usage null.
func (o *output) send(choices []object, u *usage) {
	chunk := append(object{"id", o.id, "object", chunkEvent}, o.head...)
	chunk = append(chunk, "choices", choices)
	if o.usage {
		chunk = append(chunk, "usage", u)
	}
	if o.obfuscated { // hides the length of the pieces
		chunk = append(chunk, "obfuscation", o.x.IDs.Base62(8))
	}
	if b, err := json.Marshal(chunk); err == nil { // strings and numbers can always be encoded
		o.x.Event(chunkEvent, b)
	}
}

func (o *output) delta(d object, reason any) {
	o.send([]object{{"index", o.choice.Index, "delta", d, "logprobs", nil, "finish_reason", reason}}, nil)
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
	into, first := &o.choice.Message.Content, any("")
	if name == "refusal" {
		into, first = &o.choice.Message.Refusal, nil
	}
	if o.whole == nil {
		o.role(first)
		o.delta(object{name, piece}, nil)
		return
	}
	if *into == nil {
		*into = new(string)
	}
	**into += piece
}

func (o *output) call(i int, id, name string) {
	if o.whole != nil {
		o.choice.Message.ToolCalls = append(o.choice.Message.ToolCalls, callOut{id, "function", functionOut{Name: name}})
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
	if o.whole != nil {
		o.choice.Message.ToolCalls[i].Function.Arguments += piece
		return
	}
	o.delta(object{"tool_calls", []object{{"index", i, "function", object{"arguments", piece}}}}, nil)
}

func (o *output) endChoice(reason string) {
	if o.whole == nil {
		o.role("")
		o.delta(object{}, reason)
		return
	}
	m := &o.choice.Message
	if o.choice.Finish = reason; m.Content == nil && m.Refusal == nil && len(m.ToolCalls) == 0 {
		m.Content = new(string)
	}
	o.whole = append(o.whole, o.choice)
}

func (o *output) end(u usage) {
	if o.whole != nil {
		answer := append(object{"id", o.id, "object", "chat.completion"}, o.head[:4]...)
		answer = append(answer, "choices", o.whole, "usage", u)
		o.x.JSON(append(answer, o.head[4:]...))
		return
	}
	if o.usage {
		o.send([]object{}, &u)
	}
	o.x.Event(doneEvent, []byte(doneEvent))
}

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
