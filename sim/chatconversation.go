package sim

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"strings"
	"time"

	"voicegw/sim/scenario"
)

type input struct {
	text    string
	results []scenario.Result // nil for text
}

type conversation struct {
	instructions string
	past         []answered // inputs that were answered
	now          *input     // the input to be answered; nil if there is nothing new
}

// answered is an input with the assistant's message: its text and the tools it called.
type answered struct {
	input
	said   string
	called []string
}

// remember appends the lines of the memory.
func (e *answered) remember(lines []scenario.Memory) []scenario.Memory {
	add := func(who, text string) {
		if text != "" {
			lines = append(lines, scenario.Memory{Who: who, Text: text})
		}
	}
	add("user", e.text)
	for _, r := range e.results {
		add("result", r.Name+" "+r.Output)
	}
	add("model", e.said)
	for _, name := range e.called {
		add("call", name)
	}
	return lines
}

// read sorts the messages of a request, which have been checked. System messages before
// the conversation are instructions; later ones are treated like a line of the user, as
// models do. Of several unanswered lines the newest is answered.
func read(messages []message) conversation {
	var c conversation
	names := map[string]string{} // of calls, by id
	answer := func(said string, called []string) {
		if c.now == nil { // the assistant has begun
			return
		}
		c.past = append(c.past, answered{*c.now, said, called})
		c.now = nil
	}
	begun := false
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Role == "assistant":
			begun = true
			var called []string
			for _, call := range m.ToolCalls {
				names[call.ID] = call.Function.Name
				called = append(called, call.Function.Name)
			}
			answer(m.text, called)
		case m.Role == "tool":
			if c.now == nil || c.now.results == nil {
				c.now = &input{}
			}
			c.now.results = append(c.now.results, scenario.Result{Name: names[m.ToolCallID], Output: m.text})
		case m.Role == "user" || begun:
			begun = true
			answer("", nil)
			c.now = &input{text: m.text}
		default:
			c.instructions = strings.TrimSpace(c.instructions + "\n" + m.text)
		}
	}
	return c
}

// turn is the model's answer to the conversation: everything before the last input is
// replayed, so that nothing has to be kept between requests.
func (s *Server) turn(r *chatRequest, now time.Time) scenario.Turn {
	c := read(r.Messages)
	d := s.opts.Scenario.NewDialogue(s.opts.Seed ^ c.seed())
	known := scenario.Context{
		Instructions: c.instructions, Tools: r.tools(), Now: now,
		ToolsOff: r.choice.off, ToolRequired: r.choice.required, ToolNamed: r.choice.named,
	}
	for _, e := range c.past {
		d.Replay(scenario.HeardIn(e.text), e.results, known, e.said, e.called)
		known.Memory = e.remember(known.Memory)
	}
	switch {
	case c.now == nil:
		return r.format(d.Continue(known), "")
	case c.now.results != nil:
		s.opts.Stats.Results.Add(int64(len(c.now.results)))
		return r.format(d.Results(c.now.results, known), "")
	default:
		return r.format(d.Hear(scenario.HeardIn(c.now.text), known), c.now.text)
	}
}

// seed is the conversation's seed, the same in every request of it.
func (c *conversation) seed() uint64 {
	hash := fnv.New64a()
	first := c.now
	if len(c.past) > 0 {
		first = &c.past[0].input
	}
	// Writing to a hash never fails.
	_, _ = hash.Write([]byte(c.instructions))
	if first != nil {
		_, _ = hash.Write([]byte("\n" + first.text))
	}
	return hash.Sum64()
}

// format makes the texts of a turn JSON if the request wants it. asked is the text that is answered, if it is one.
func (r *chatRequest) format(t scenario.Turn, asked string) scenario.Turn {
	f := r.ResponseFormat
	if f == nil || f.Type == "text" {
		return t
	}
	var said []string
	var rest []scenario.Step
	for _, s := range t.Steps {
		switch s := s.(type) {
		case scenario.Calls:
			return t // JSON comes after the tools have answered
		case scenario.Say:
			if s.Refusal {
				return t
			}
			said = append(said, s.Text)
		default:
			rest = append(rest, s)
		}
	}
	text := strings.Join(said, " ")
	out, err := json.Marshal(object{"answer", text})
	if err != nil { // a string can always be encoded
		return t
	}
	if f.JSONSchema != nil {
		out = scenario.Fill(scenario.Tool{Name: f.JSONSchema.Name, Parameters: f.JSONSchema.Schema}, cmp.Or(asked, text))
	}
	t.Steps = append(rest, scenario.Say{Text: string(out)})
	return t
}
