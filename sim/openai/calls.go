package openai

import (
	"bytes"
	"encoding/json"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

func (c *conn) callTools(r *response, calls []scenario.Call) {
	if !c.model.phases {
		c.closeMessage(r, completed)
	}
	for _, call := range calls {
		if r.over || c.w.Closed() {
			return
		}
		c.callTool(r, call)
	}
	c.closeMessage(r, completed) // still open if every call is late
}

func (c *conn) callTool(r *response, call scenario.Call) {
	c.calls++
	actions := append(r.onCall, c.w.At(fault.Point{At: fault.AtCall, Turn: r.turn, N: c.calls})...)
	r.onCall = nil
	var cancel *fault.Action
	for _, a := range wire.PlanCall(&call, "call_"+c.ids.Base62(16), actions) {
		if a.Kind == fault.CancelCall {
			cancel = &a
		} else {
			c.Commit([]fault.Action{a})
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

func (c *conn) cancelCall(r *response, a fault.Action) {
	if a.For == 0 {
		c.finish(r, cancelled, "reason", "turn_detected")
		return
	}
	r.next = r.next.Add(a.For + time.Hour) // it stays open until then
	c.after(a.For, func() { c.finish(r, cancelled, "reason", "turn_detected") })
}

// sendCall sends one function_call item. With models of the second generation
// the preceding message ends only after the item was added, as recorded.
func (c *conn) sendCall(r *response, call scenario.Call, doomed bool) {
	it := &item{id: c.itemID(), kind: kindCall, status: inProgress, name: call.Name, callID: call.ID, answered: true}
	index := len(r.obj.Output)
	c.openItem(r, it)
	at := object{"response_id", r.obj.ID, "item_id", it.id, "output_index", index, "call_id", call.ID}
	arguments := c.model.style(call.Args)
	for _, piece := range wire.ArgumentPieces(arguments) {
		if r.over {
			return
		}
		r.out.words(piece)
		c.emit("response.function_call_arguments.delta", append(at, "delta", piece, "obfuscation", c.obfuscation(piece))...)
	}
	it.arguments = arguments
	c.closeMessage(r, completed)
	if doomed {
		c.closeItem(r, it, index, incomplete)
		return
	}
	c.emit("response.function_call_arguments.done", append(at, "name", call.Name, "arguments", arguments)...)
	c.closeItem(r, it, index, completed)
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
		c.after(100*time.Millisecond, func() { c.lateResponse(call) })
		return
	}
	call.Late = 0
	r := c.newResponse(&request{})
	r.steps = []scenario.Step{scenario.Calls{Calls: []scenario.Call{call}}}
	c.begin(r)
}
