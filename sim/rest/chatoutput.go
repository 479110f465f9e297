package rest

import (
	"encoding/json"

	"voicegw/sim/wire"
)

type head struct {
	ID          string
	Created     int64
	Model       string
	ServiceTier string
	Fingerprint string
}

// output makes one answer from its choices, which come one after the other.
type output interface {
	choice(i int) writer
	end(u usage) error
}

func newOutput(x *Exchange, r *chatRequest, h head) output {
	if !r.Stream {
		return &whole{x: x, head: h}
	}
	s := &stream{x: x, head: h, obfuscate: true}
	if o := r.StreamOptions; o != nil {
		s.usage = o.IncludeUsage
		s.obfuscate = o.IncludeObfuscation == nil || *o.IncludeObfuscation
	}
	return s
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

type completion struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	Model       string       `json:"model"`
	Choices     []*choiceOut `json:"choices"`
	Usage       usage        `json:"usage"`
	ServiceTier string       `json:"service_tier"`
	Fingerprint string       `json:"system_fingerprint"`
}

type whole struct {
	x       *Exchange
	head    head
	choices []*choiceOut
}

func (w *whole) choice(i int) writer {
	c := &choiceOut{Index: i, Message: messageOut{Role: "assistant", Annotations: []string{}}}
	w.choices = append(w.choices, c)
	return c
}

func (w *whole) end(u usage) error {
	return w.x.JSON(completion{w.head.ID, "chat.completion", w.head.Created, w.head.Model, w.choices, u, w.head.ServiceTier,
		w.head.Fingerprint})
}

func (c *choiceOut) begin(bool) error { return nil }

func add(to **string, piece string) {
	if *to == nil {
		*to = new(string)
	}
	**to += piece
}

func (c *choiceOut) text(piece string) error {
	add(&c.Message.Content, piece)
	return nil
}

func (c *choiceOut) refusal(piece string) error {
	add(&c.Message.Refusal, piece)
	return nil
}

func (c *choiceOut) call(_ int, id, name string) error {
	c.Message.ToolCalls = append(c.Message.ToolCalls, callOut{id, "function", functionOut{Name: name}})
	return nil
}

func (c *choiceOut) arguments(i int, piece string) error {
	c.Message.ToolCalls[i].Function.Arguments += piece
	return nil
}

func (c *choiceOut) end(reason string) error {
	c.Finish = reason
	if c.Message.Content == nil && c.Message.Refusal == nil && len(c.Message.ToolCalls) == 0 {
		add(&c.Message.Content, "") // a model that says nothing sends an empty text
	}
	return nil
}

type object = wire.Object

type stream struct {
	x         *Exchange
	head      head
	usage     bool
	obfuscate bool
}

func (s *stream) choice(i int) writer { return &streamed{s: s, index: i} }

// chunkEvent and doneEvent are the names of a chunk and of the end in a fault script.
const (
	chunkEvent = "chat.completion.chunk"
	doneEvent  = "[DONE]"
)

// send sends one chunk. If usage was requested, every chunk but the last has usage null.
func (s *stream) send(choices []object, u *usage) error {
	o := object{
		"id", s.head.ID, "object", chunkEvent, "created", s.head.Created, "model", s.head.Model,
		"service_tier", s.head.ServiceTier, "system_fingerprint", s.head.Fingerprint, "choices", choices,
	}
	if s.usage {
		o = append(o, "usage", u)
	}
	if s.obfuscate { // hides the length of the pieces
		o = append(o, "obfuscation", s.x.IDs.Base62(8))
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return s.x.Event(chunkEvent, b)
}

func (s *stream) end(u usage) error {
	if s.usage {
		if err := s.send([]object{}, &u); err != nil {
			return err
		}
	}
	return s.x.Event(doneEvent, []byte(doneEvent))
}

type streamed struct {
	s     *stream
	index int
	alone bool
	open  bool // the stream has begun
}

func (c *streamed) delta(d object, reason any) error {
	return c.s.send([]object{{"index", c.index, "delta", d, "logprobs", nil, "finish_reason", reason}}, nil)
}

func (c *streamed) begin(alone bool) error {
	if c.alone = alone; c.index == 0 {
		if err := c.s.x.Stream(); err != nil {
			return err
		}
	}
	return nil
}

func (c *streamed) role(content any) error {
	if c.open {
		return nil
	}
	c.open = true
	return c.delta(object{"role", "assistant", "content", content, "refusal", nil}, nil)
}

func (c *streamed) text(piece string) error {
	if err := c.role(""); err != nil {
		return err
	}
	return c.delta(object{"content", piece}, nil)
}

func (c *streamed) refusal(piece string) error {
	if err := c.role(nil); err != nil {
		return err
	}
	return c.delta(object{"refusal", piece}, nil)
}

func (c *streamed) call(i int, id, name string) error {
	call := object{"index", i}
	if id != "" {
		call = append(call, "id", id)
	}
	call = append(call, "type", "function", "function", object{"name", name, "arguments", ""})
	if c.alone && !c.open { // a single call comes in the chunk with the role
		c.open = true
		return c.delta(object{"role", "assistant", "content", nil, "tool_calls", []object{call}, "refusal", nil}, nil)
	}
	if err := c.role(nil); err != nil {
		return err
	}
	return c.delta(object{"tool_calls", []object{call}}, nil)
}

func (c *streamed) arguments(i int, piece string) error {
	return c.delta(object{"tool_calls", []object{{"index", i, "function", object{"arguments", piece}}}}, nil)
}

func (c *streamed) end(reason string) error {
	if err := c.role(""); err != nil {
		return err
	}
	return c.delta(object{}, reason)
}
