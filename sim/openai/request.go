package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// request is a response.create whose references are resolved.
type request struct {
	openaiwire.ResponseParams
	input []*item // nil if it was not given
}

func (c *conn) resolve(q *openaiwire.ResponseParams) (*request, *openaiwire.Error) {
	r := &request{ResponseParams: *q}
	for i, wire := range q.Input {
		it := itemOf(wire, c.sess.Audio.Input.Format)
		if it.Type == openaiwire.ItemReference {
			old, _ := c.conv.items.Find(it.ID)
			if old == nil {
				return nil, openaiwire.NoSuchItem(openaiwire.Path("response.input", i)+".id", it.ID)
			}
			it = old
		}
		r.input = append(r.input, it)
	}
	return r, nil
}

const maxRunning = 32

func (c *conn) createResponse(e *openaiwire.ClientEvent) *openaiwire.Error {
	q, err := c.resolve(e.Response)
	if err != nil {
		return err
	}
	if r := c.active(); r != nil && !q.Aside {
		return openaiwire.ActiveResponse(r.obj.ID)
	}
	if len(c.running) >= maxRunning {
		return openaiwire.Invalid("too_many_active_responses", "",
			"There are %d active responses already. Wait until one of them is finished.", len(c.running))
	}
	if !c.deaf {
		c.begin(q, c.answer(q).Steps)
	}
	return nil
}

func (c *conn) answer(q *request) scenario.Turn {
	ctx := c.context(q)
	d := c.dialogue
	var results, said []*item
	switch {
	case q.Given:
		d = d.Fork()
		for _, it := range q.input {
			if it.Type == openaiwire.FunctionOutput {
				results = append(results, it)
			} else if it.Type == openaiwire.Message && it.Role == "user" {
				said = append(said, it)
			}
		}
	case q.Aside:
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
	case q.Instructions != nil && *q.Instructions != "":
		// The only thing to answer is this response's instructions.
		turn = d.Fork().Hear(scenario.Heard{Text: *q.Instructions}, ctx)
	default:
		turn = d.Continue(ctx)
	}
	return turn
}

// memory returns the conversation, or the request's own input, without the items to answer now.
func (c *conversation) memory(q *request, fresh []*item) []scenario.Memory {
	items := c.items
	if q.Given {
		items = q.input
	}
	names := map[string]string{}
	var known []scenario.Memory
	for _, it := range items {
		if it.Type == openaiwire.FunctionCall {
			names[it.CallID] = it.Name
		}
		if slices.Contains(fresh, it) {
			continue
		}
		if m, ok := it.memory(cmp.Or(names[it.CallID], c.callName(it.CallID))); ok {
			known = append(known, m)
		}
	}
	return known
}

func hear(it *item) scenario.Heard {
	if it.IsAudio() {
		h := scenario.Heard{Spoken: true, Duration: it.spoken}
		if it.told {
			h.Text = it.Words()
		}
		return h
	}
	return scenario.Heard{Text: it.Words()}
}

func (c *conversation) results(items []*item) []scenario.Result {
	out := make([]scenario.Result, len(items))
	for i, it := range items {
		out[i] = scenario.Result{Name: c.callName(it.CallID), Output: it.Output}
	}
	return out
}

func (c *conn) context(q *request) scenario.Context {
	ctx := scenario.Context{Instructions: *cmp.Or(q.Instructions, &c.sess.Instructions), Preamble: c.model.phases}
	for _, t := range openaiwire.Given(q.Tools, c.sess.Tools) {
		if t.Type != "function" {
			continue
		}
		known := scenario.Tool{Name: t.Name, Parameters: t.Parameters}
		if t.Description != nil {
			known.Description = *t.Description
		}
		ctx.Tools = append(ctx.Tools, known)
	}
	switch choice := openaiwire.Given(q.ToolChoice, c.sess.ToolChoice); string(choice) {
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

func (c *conn) begin(q *request, steps []scenario.Step) {
	o := openaiwire.NewResponse(c.ids.New("resp"), c.conv.id, c.sess, &q.ResponseParams)
	c.turn++
	c.idle++
	r := &response{obj: o, aside: q.Aside, inText: o.InText(), speed: c.sess.Audio.Output.Speed, turn: c.turn,
		steps: steps, next: time.Now()}
	// "inf" is not a number and leaves the limit at 0.
	_ = json.Unmarshal(o.MaxOutputTokens, &r.limit)
	c.countInput(q, r)
	c.running = append(c.running, r)
	c.stats.Responses.Add(1)
	c.tell("response.created", r.obj)
	if c.quota {
		c.failQuota(r)
		return
	}
	c.Commit(c.w.At(scenario.Point{At: scenario.AtTurn, Turn: r.turn, N: r.turn}))
}

func (c *conn) countInput(q *request, r *response) {
	items, declared := c.conv.items, openaiwire.Given(q.Tools, c.sess.Tools)
	if q.Given {
		items = q.input
	}
	r.reasons = c.model.phases && len(declared) == 0
	r.in = countItems(items)
	r.in.text += wire.TextTokens(*cmp.Or(q.Instructions, &c.sess.Instructions)) + countTools(declared)
}

func withAudio(it *item) (json.RawMessage, error) {
	if len(it.audio) == 0 || it.Type != openaiwire.Message {
		return json.Marshal(&it.Item)
	}
	parts := make([]object, len(it.Content))
	for i, p := range it.Content {
		parts[i] = object{"type", p.Type}
		if p.Type == "input_audio" || p.Type == "output_audio" {
			parts[i] = append(parts[i], "audio", string(audio.AppendBase64(nil, it.audio)))
		}
		if p.Transcript != nil {
			parts[i] = append(parts[i], "transcript", p.Transcript)
		}
		if p.Text != "" {
			parts[i] = append(parts[i], "text", p.Text)
		}
	}
	return it.Message(parts).MarshalJSON()
}

func isCalls(s scenario.Step) bool {
	_, is := s.(scenario.Calls)
	return is
}
