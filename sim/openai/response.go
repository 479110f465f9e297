package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

type response struct {
	// Fixed after startResponse.
	obj    *openaiwire.Response
	aside  bool // outside the conversation
	inText bool // output is text
	limit  int  // limit of output tokens; 0 means no limit
	speed  float64
	turn   int
	// reasons means that it counts reasoning tokens: as recorded, models of the
	// second generation do so if no tools are declared.
	reasons bool

	// Owned by the connection's goroutine.
	steps   []scenario.Step
	next    time.Time // when it continues
	msg     *message
	line    *voice.Delivery
	began   time.Time // of line
	spoke   bool      // a line was begun before
	onCall  []scenario.Fault
	late    []scenario.Call // sent after its end
	in      inputTokens
	out     outputTokens
	heardTo time.Time // when a client that plays in real time has heard it all
	over    bool
}

type message struct {
	item  *item
	place openaiwire.Place
	words string
}

func (c *conn) advance(r *response, now time.Time) {
	for !r.over && !c.w.Closed() && !r.next.After(now) {
		switch {
		case r.line != nil:
			c.deliver(r)
		case len(r.steps) == 0:
			c.finish(r, openaiwire.Completed)
		default:
			s := r.steps[0]
			r.steps = r.steps[1:]
			c.step(r, s)
		}
		c.settle()
	}
}

func (c *conn) step(r *response, s scenario.Step) {
	switch s := s.(type) {
	case scenario.Say:
		c.say(r, s)
	case scenario.Calls:
		c.callTools(r, s.Calls)
	case scenario.Wait:
		r.next = r.next.Add(s.For)
	case scenario.Fault:
		if k := s.Kind; k == scenario.DuplicateCall || k == scenario.LateCall || k == scenario.MissingID {
			r.onCall = append(r.onCall, s)
			return
		}
		c.Commit(c.w.Do([]scenario.Fault{s}))
	case scenario.End:
		c.finish(r, openaiwire.Completed)
		c.w.Close(s.Code, s.Reason)
	}
}

func (c *conn) say(r *response, s scenario.Say) {
	o := voice.DeliveryOptions{ChunkMS: c.opts.ChunkMS, FirstAudioMS: c.opts.FirstAudioMS, Speed: c.opts.Speed}
	if r.spoke {
		o.FirstAudioMS = -1
	}
	if c.model.whole {
		o.ChunkMS = wholeLine
	}
	line := lineOf(c.lines, s, r)
	if line.Words == nil && line.Audio == nil {
		return
	}
	if r.spoke && len(line.Words) > 0 && r.msg != nil && r.msg.words != "" {
		line.Words[0].Text = " " + line.Words[0].Text
	}
	r.line, r.began, r.spoke = voice.NewDelivery(line, o), r.next, true
	r.schedule()
}

func (r *response) schedule() {
	due, ok := r.line.Due()
	if !ok {
		if r.msg != nil {
			r.heardTo = later(r.heardTo, r.began.Add(r.line.PlayedOut()))
		}
		r.line = nil
		return
	}
	r.next = r.began.Add(due)
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func (c *conn) deliver(r *response) {
	if r.msg == nil {
		c.openMessage(r)
	}
	p, ok := r.line.Next()
	if !ok || r.over {
		return
	}
	for _, w := range p.Words {
		if r.over || r.reached() {
			break
		}
		c.sendWord(r, w.Text)
	}
	if len(p.Audio) > 0 && !r.over && !r.reached() {
		c.sendAudio(r, p)
	}
	switch {
	case r.over:
	case r.reached():
		c.finish(r, openaiwire.Incomplete, "reason", "max_output_tokens")
	default:
		r.schedule()
	}
}

func (r *response) reached() bool { return r.limit > 0 && r.out.total() >= r.limit }

func (c *conn) sendWord(r *response, word string) {
	r.msg.words += word
	r.out.text++
	c.emitWords(r.msg.place.WordsDelta(r.inText, word), word)
}

func (c *conn) sendAudio(r *response, p voice.Part) {
	r.out.chunks++
	c.Commit(c.w.At(scenario.Point{At: scenario.AtChunk, Turn: r.turn, N: r.out.chunks}))
	if r.over {
		return
	}
	length := p.To - p.From
	r.msg.item.length += length
	r.out.audio += length
	c.stats.AudioOutMS.Add(length.Milliseconds())
	if !r.aside {
		c.sess.VoiceFixed = true
		c.conv.keep(r.msg.item, p.Audio)
	}
	c.sent(openaiwire.AudioDelta, r.msg.place.AppendAudioDelta(make([]byte, 0, len(p.Audio)*4/3+300), c.ids.IDs, p.Audio))
}

func (c *conn) openMessage(r *response) {
	it := &item{answered: true, format: r.obj.Audio.Output.Format}
	it.ID, it.Type, it.Status, it.Role = c.ids.New("item"), openaiwire.Message, openaiwire.InProgress, "assistant"
	if c.model.phases {
		it.Phase = "final_answer"
		if slices.ContainsFunc(r.steps, isCalls) {
			it.Phase = "commentary"
		}
	}
	r.msg = &message{item: it, place: c.openItem(r, it)}
	c.emit(r.msg.place.Event("response.content_part.added", openaiwire.Part(r.inText, "")))
}

func (c *conn) openItem(r *response, it *item) openaiwire.Place {
	place := openaiwire.Place{ResponseID: r.obj.ID, ItemID: it.ID, Output: len(r.obj.Output)}
	r.obj.Output = append(r.obj.Output, &it.Item)
	c.emit(place.Event("response.output_item.added", &it.Item))
	if !r.aside {
		previous := c.conv.items.Last()
		c.conv.insert(it, len(c.conv.items))
		c.tell("conversation.item.added", previous, &it.Item)
	}
	return place
}

func (c *conn) closeItem(r *response, it *item, place openaiwire.Place, status string) {
	it.Status = status
	if !r.aside {
		c.tell("conversation.item.done", c.conv.beforeDone(it), &it.Item)
	}
	c.emit(place.Event("response.output_item.done", &it.Item))
}

// beforeDone is the previous_item_id of conversation.item.done: it is also null for the
// second item of a conversation, as recorded.
func (c *conversation) beforeDone(it *item) *string {
	if _, i := c.items.Find(it.ID); i == 1 {
		return nil
	}
	return c.items.Before(it.ID)
}

func (c *conn) closeMessage(r *response, status string) {
	if m := r.msg; m != nil {
		c.emit(m.place.CloseMessage(&m.item.Item, r.inText, m.words)...)
		c.closeItem(r, m.item, m.place, status)
		r.msg = nil
	}
}

// finish ends a response. details are the members of status_details after its type.
func (c *conn) finish(r *response, status string, details ...any) {
	if r.over {
		return
	}
	r.over = true
	if r.line != nil {
		r.heardTo = later(r.heardTo, r.began.Add(r.line.PlayedOut()))
		r.line.Stop()
	}
	c.closeMessage(r, r.obj.End(status, details...))
	used := c.account(r)
	c.running = slices.DeleteFunc(c.running, func(x *response) bool { return x == r })
	if c.model.uncounted {
		r.obj.Usage = nil
	}
	c.tell("response.done", r.obj)
	if c.model.phases {
		c.tell("rate_limits.updated", []object{{
			"name", "tokens", "limit", tokenLimit, "remaining", tokenLimit - used, "reset_seconds", float64(used) * 60 / tokenLimit,
		}})
	}
	for _, call := range r.late {
		c.later.After(call.Late, func() { c.lateResponse(call) })
	}
	if !r.aside {
		c.armIdle(r)
	}
}

func (c *conn) callTools(r *response, calls []scenario.Call) {
	if !c.model.phases {
		c.closeMessage(r, openaiwire.Completed)
	}
	for _, call := range calls {
		if r.over || c.w.Closed() {
			return
		}
		c.callTool(r, call)
	}
	c.closeMessage(r, openaiwire.Completed) // still open if every call is late
}

func (c *conn) callTool(r *response, call scenario.Call) {
	c.calls++
	actions := append(r.onCall, c.w.At(scenario.Point{At: scenario.AtCall, Turn: r.turn, N: c.calls})...)
	r.onCall = nil
	var cancel *scenario.Fault
	for _, a := range wire.PlanCall(&call, c.ids.New("call"), actions) {
		if a.Kind == scenario.CancelCall {
			cancel = &a
		} else {
			c.Commit([]scenario.Fault{a})
		}
	}
	if r.over {
		return
	}
	if call.Late > 0 {
		r.late = append(r.late, call)
		return
	}
	for range call.Repeat + 1 {
		if r.over {
			return
		}
		c.stats.Calls.Add(1)
		c.sendCall(r, call, cancel != nil)
	}
	if cancel != nil {
		c.cancelCall(r, *cancel)
	}
}

func (c *conn) cancelCall(r *response, a scenario.Fault) {
	if a.For == 0 {
		c.finish(r, openaiwire.Cancelled, "reason", "turn_detected")
		return
	}
	r.next = r.next.Add(a.For + time.Hour) // it stays open until then
	c.later.After(a.For, func() { c.finish(r, openaiwire.Cancelled, "reason", "turn_detected") })
}

// sendCall sends one function_call item. With models of the second generation
// the preceding message ends only after the item was added, as recorded.
func (c *conn) sendCall(r *response, call scenario.Call, doomed bool) {
	it := &item{answered: true}
	it.ID, it.Type, it.Status, it.Name, it.CallID = c.ids.New("item"), openaiwire.FunctionCall, openaiwire.InProgress, call.Name, call.ID
	at := c.openItem(r, it)
	arguments := c.model.style(call.Args)
	for _, piece := range wire.ArgumentPieces(arguments) {
		if r.over {
			return
		}
		r.out.text++
		c.emitWords(at.Event("response.function_call_arguments.delta", call.ID, piece), piece)
	}
	it.Arguments = arguments
	c.closeMessage(r, openaiwire.Completed)
	if doomed {
		c.closeItem(r, it, at, openaiwire.Incomplete)
		return
	}
	c.emit(at.Event("response.function_call_arguments.done", call.ID, call.Name, arguments))
	c.closeItem(r, it, at, openaiwire.Completed)
}

// style writes arguments as the model does: compact, or with the spaces
// and new lines that were recorded with gpt-realtime.
func (m model) style(args json.RawMessage) string {
	var b bytes.Buffer
	if !m.spaced {
		if json.Compact(&b, args) != nil {
			return string(args)
		}
		return b.String()
	}
	if json.Indent(&b, args, "", "  ") != nil {
		return string(args)
	}
	return string(bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(" \n"))) + " \n"
}

func (c *conn) lateResponse(call scenario.Call) {
	if c.active() != nil {
		c.later.After(100*time.Millisecond, func() { c.lateResponse(call) })
		return
	}
	call.Late = 0
	c.begin(&request{}, []scenario.Step{scenario.Calls{Calls: []scenario.Call{call}}})
}
