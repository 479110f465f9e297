package orchestrator

import (
	"encoding/json"
	"slices"
	"strconv"

	"voicegw/registry"
	"voicegw/transport"
)

// toolCall answers a call. There is no registry yet, so no tool is known; the
// model is told so, and every call has its one terminal.
func (m *machine) toolCall(ev transport.ToolCall) {
	if m.turn == nil || m.turn.modelDone {
		m.openTurn(m.at)
	}
	m.callCount++
	id := "call_" + strconv.Itoa(m.callCount)
	env := registry.NotFound(ev.Name, "", 0)
	m.calls = append(m.calls, call{call: ev.Call, id: ev.ID, done: true})
	if len(m.calls) > maxCalls {
		m.calls = slices.Delete(m.calls, 0, 1)
	}
	m.turn.answered++
	m.do(ToolStarted{Turn: m.turn.number, Call: id, Tool: ev.Name})
	m.send(transport.ToolResult{Call: ev.Call, Output: encode(env)})
	m.do(ToolEnded{Turn: m.turn.number, Call: id, Tool: ev.Name, Envelope: env})
}

// toolCancelled needs no answer: a call that was answered before is nobody's
// fault, and none is answered after.
func (m *machine) toolCancelled(ev transport.ToolCancelled) {
	m.calls = slices.DeleteFunc(m.calls, func(c call) bool {
		return !c.done && slices.Contains(ev.Calls, c.call)
	})
}

// encode writes an envelope; its parts are plain values or came out of a
// json.Marshal, so that nothing can fail.
func encode(env registry.Envelope) json.RawMessage {
	b, err := json.Marshal(env)
	if err != nil {
		return json.RawMessage(`{"ok":false,"error":{"type":"INTERNAL","message":"The answer could not be written.","retryable":false}}`)
	}
	return b
}
