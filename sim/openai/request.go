package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/sim/fault"
	"voicegw/sim/rest"
	"voicegw/sim/scenario"
)

// request holds the settings of one response; nil or empty means the session's setting.
type request struct {
	aside        bool
	input        []*item // nil if it was not given
	given        bool    // input was given, even if empty
	instructions *string
	tools        []tool
	toolChoice   json.RawMessage
	modalities   []string
	maxTokens    json.RawMessage
	metadata     json.RawMessage
	voice        string
	format       format
}

func (c *conn) readRequest(raw json.RawMessage) (*request, *rest.Error) {
	q := &request{}
	if len(raw) == 0 || isNull(raw) {
		return q, nil
	}
	var conversation, instructions string
	err := fields{
		"conversation": word(&conversation, "auto", "none"),
		"input":        func(raw json.RawMessage, path string) *rest.Error { return c.readInput(q, raw, path) },
		"instructions": func(raw json.RawMessage, path string) *rest.Error {
			q.instructions = &instructions
			return text(&instructions)(raw, path)
		},
		"tools": tools(&q.tools), "tool_choice": toolChoice(&q.toolChoice), "output_modalities": modalities(&q.modalities),
		"max_output_tokens": maxTokens(&q.maxTokens), "metadata": asIs(&q.metadata), "prompt": ignored, "reasoning": ignored,
		"parallel_tool_calls": ignored,
		"audio": fields{"output": fields{"format": formats(&q.format), "voice": func(raw json.RawMessage, path string) (err *rest.Error) {
			q.voice, err = voiceName(raw, path)
			return err
		}}.apply}.apply,
	}.apply(raw, "response")
	q.aside = conversation == "none"
	return q, err
}

func (c *conn) readInput(q *request, raw json.RawMessage, path string) *rest.Error {
	list, err := array(raw, path)
	if err != nil {
		return err
	}
	q.given = true
	for i, e := range list {
		it, err := readItem(e, index(path, i), c.sess.Audio.Input.Format)
		if err != nil {
			return err
		}
		if it.kind == "item_reference" {
			old, _ := c.conv.find(it.id)
			if old == nil {
				return noSuchItem(index(path, i)+".id", it.id)
			}
			it = old
		}
		q.input = append(q.input, it)
	}
	return nil
}

const maxRunning = 32

func (c *conn) createResponse(e *clientEvent) *rest.Error {
	q, err := c.readRequest(e.Response)
	if err != nil {
		return err
	}
	if r := c.active(); r != nil && !q.aside {
		return activeResponse(r.obj.ID)
	}
	if len(c.running) >= maxRunning {
		return rest.Invalid("too_many_active_responses", "",
			"There are %d active responses already. Wait until one of them is finished.", len(c.running))
	}
	if c.deaf {
		return nil
	}
	r := c.newResponse(q)
	turn := c.answer(q, r)
	r.steps = turn.Steps
	c.begin(r)
	return nil
}

func (c *conn) answer(q *request, r *response) scenario.Turn {
	ctx := c.context(q)
	d := c.dialogue
	var results, said []*item
	switch {
	case q.given:
		d = d.Fork()
		for _, it := range q.input {
			if it.kind == kindOutput {
				results = append(results, it)
			} else if it.kind == kindMessage && it.role == "user" {
				said = append(said, it)
			}
		}
	case q.aside:
		d = d.Fork()
	default:
		results, said = c.conv.pending()
	}
	fresh := slices.Clone(results)
	if len(said) > 0 {
		fresh = append(fresh, said[len(said)-1])
	}
	ctx.Memory = c.conv.memory(q, fresh)
	var turn scenario.Turn
	if len(results) > 0 {
		turn = d.Results(c.conv.results(results), ctx)
	}
	switch {
	case len(said) > 0 && slices.ContainsFunc(turn.Steps, isCalls):
		for _, it := range said { // its turn comes after the results of those calls
			it.answered = false
		}
	case len(said) > 0:
		more := d.Hear(hear(said[len(said)-1]), ctx)
		turn.Heard, turn.Steps = more.Heard, append(turn.Steps, more.Steps...)
	case len(results) > 0:
	case q.instructions != nil && *q.instructions != "":
		// The only thing to answer is this response's instructions.
		turn = d.Fork().Hear(scenario.Heard{Text: *q.instructions}, ctx)
	default:
		turn = d.Continue(ctx)
	}
	return turn
}

// memory returns the conversation, or the request's own input, without the items to answer now.
func (c *conversation) memory(q *request, fresh []*item) []scenario.Memory {
	items := c.items
	if q.given {
		items = q.input
	}
	names := map[string]string{}
	var known []scenario.Memory
	for _, it := range items {
		if it.kind == kindCall {
			names[it.callID] = it.name
		}
		if slices.Contains(fresh, it) {
			continue
		}
		if m, ok := it.memory(cmp.Or(names[it.callID], c.callName(it.callID))); ok {
			known = append(known, m)
		}
	}
	return known
}

func hear(it *item) scenario.Heard {
	if it.isAudio() {
		h := scenario.Heard{Spoken: true, Duration: it.spoken}
		if it.told {
			h.Text = it.words()
		}
		return h
	}
	return scenario.Heard{Text: it.words()}
}

func (c *conversation) results(items []*item) []scenario.Result {
	out := make([]scenario.Result, len(items))
	for i, it := range items {
		out[i] = scenario.Result{Name: c.callName(it.callID), Output: it.output}
	}
	return out
}

func (c *conn) context(q *request) scenario.Context {
	ctx := scenario.Context{Instructions: c.sess.Instructions, Preamble: c.model.phases}
	if q.instructions != nil {
		ctx.Instructions = *q.instructions
	}
	declared, choice := c.sess.Tools, c.sess.ToolChoice
	if q.tools != nil {
		declared = q.tools
	}
	if q.toolChoice != nil {
		choice = q.toolChoice
	}
	for _, t := range declared {
		if t.Type != "function" {
			continue
		}
		known := scenario.Tool{Name: t.Name, Parameters: t.Parameters}
		if t.Description != nil {
			known.Description = *t.Description
		}
		ctx.Tools = append(ctx.Tools, known)
	}
	switch string(choice) {
	case `"none"`:
		ctx.ToolsOff = true
	case `"required"`:
		ctx.ToolRequired = true
	default:
		var named struct{ Name string }
		if json.Unmarshal(choice, &named) == nil {
			ctx.ToolNamed = named.Name
		}
	}
	return ctx
}

func (c *conn) newResponse(q *request) *response {
	o := &responseObject{
		Object: "realtime.response", ID: "resp_" + c.ids.Base62(21), Status: inProgress, Output: []*item{},
		OutputModalities: c.sess.OutputModalities, MaxOutputTokens: c.sess.MaxOutputTokens, Metadata: null,
	}
	if q.modalities != nil {
		o.OutputModalities = q.modalities
	}
	if q.maxTokens != nil {
		o.MaxOutputTokens = q.maxTokens
	}
	if q.metadata != nil {
		o.Metadata = q.metadata
	}
	if !q.aside {
		o.ConversationID = &c.conv.id
	}
	o.Audio.Output.Format = cmp.Or(q.format, c.sess.Audio.Output.Format)
	o.Audio.Output.Voice = cmp.Or(q.voice, c.sess.Audio.Output.Voice)
	r := &response{obj: o, aside: q.aside, inText: o.OutputModalities[0] == "text", speed: c.sess.Audio.Output.Speed}
	// "inf" is not a number and leaves the limit at 0.
	_ = json.Unmarshal(o.MaxOutputTokens, &r.limit)
	c.countInput(q, r)
	return r
}

func (c *conn) countInput(q *request, r *response) {
	items := c.conv.items
	if q.given {
		items = q.input
	}
	n := countItems(items)
	instructions, declared := c.sess.Instructions, c.sess.Tools
	if q.instructions != nil {
		instructions = *q.instructions
	}
	if q.tools != nil {
		declared = q.tools
	}
	r.reasons = c.model.phases && len(declared) == 0
	n.text += countItems([]*item{{kind: kindMessage, content: []content{{text: instructions}}}}).text + countTools(declared)
	c.inputOf[r.obj.ID] = n
}

func (c *conn) begin(r *response) {
	c.turn++
	c.idle++
	r.turn = c.turn
	r.next = time.Now()
	c.running = append(c.running, r)
	c.stats.Responses.Add(1)
	c.emit("response.created", "response", r.obj)
	if c.quota {
		c.failQuota(r)
		return
	}
	c.Commit(c.w.At(fault.Point{At: fault.AtTurn, Turn: r.turn, N: r.turn}))
}

func withAudio(it *item) (json.RawMessage, error) {
	if len(it.audio) == 0 || it.kind != kindMessage {
		return json.Marshal(it)
	}
	parts := make([]object, len(it.content))
	for i, p := range it.content {
		parts[i] = object{"type", p.kind}
		if p.kind == "input_audio" || p.kind == "output_audio" {
			parts[i] = append(parts[i], "audio", string(audio.AppendBase64(nil, it.audio)))
		}
		if p.transcript != nil {
			parts[i] = append(parts[i], "transcript", p.transcript)
		}
		if p.text != "" {
			parts[i] = append(parts[i], "text", p.text)
		}
	}
	return it.message(parts).MarshalJSON()
}

func isCalls(s scenario.Step) bool {
	_, is := s.(scenario.Calls)
	return is
}
