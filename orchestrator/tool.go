package orchestrator

import (
	"slices"
	"strconv"

	"voicegw/registry"
	"voicegw/transport"
)

// toolCall lets a call run. Its one terminal is the result that is sent when it has
// finished, or the model's own cancellation.
func (m *machine) toolCall(ev transport.ToolCall) {
	if m.turn == nil || m.turn.modelDone {
		m.openTurn(m.at)
	}
	m.callCount++
	m.turn.calls++
	c := call{id: "call_" + strconv.Itoa(m.callCount), model: ev.Call, tool: ev.Name, turn: m.turn.number}
	m.calls = append(m.calls, c)
	m.do(ToolStarted{Turn: c.turn, Call: c.id, Tool: c.tool})
	if len(m.calls) > maxCalls {
		m.toolFinished(ToolFinished{Call: c.id, Envelope: tooMany(c.tool)})
		return
	}
	m.do(RunTool{Turn: c.turn, Call: c.id, ProviderID: ev.ID, Tool: c.tool, Args: ev.Args})
}

// tooMany answers a call for which there is no room.
func tooMany(tool string) registry.Envelope {
	return registry.Envelope{
		Error: &registry.Error{Type: registry.ErrorRateLimit, Message: "Too many tool calls are running.",
			Retryable: true, Suggestion: "Wait for their results first."},
		Meta: registry.Meta{Tool: tool, ResponseSchemaVersion: registry.ResponseSchemaVersion},
	}
}

// toolFinished answers a call, unless the model has withdrawn it.
func (m *machine) toolFinished(in ToolFinished) {
	i := slices.IndexFunc(m.calls, func(c call) bool { return c.id == in.Call })
	if i < 0 {
		return
	}
	c := m.calls[i]
	m.calls = slices.Delete(m.calls, i, i+1)
	m.lastActive = m.at
	if !c.cancelled {
		m.send(transport.ToolResult{Call: c.model, Output: in.Envelope.Encode(), Scheduling: in.Scheduling})
	}
	m.do(ToolEnded{Turn: c.turn, Call: c.id, Tool: c.tool, Envelope: in.Envelope, Delivered: !c.cancelled})
	if t := m.turn; t != nil && t.number == c.turn {
		m.answered(t)
	}
	if in.Envelope.OK {
		for _, intent := range in.Envelope.Intents {
			m.apply(intent)
		}
	}
}

// answered goes on with a turn that has one result more.
func (m *machine) answered(t *turn) {
	t.owedFrom, t.spoke = m.at, false
	if m.responding {
		t.calls++ // this response began without the result: it needs another one
	}
	m.settleCalls(t)
}

// settleCalls asks for the answer once the response is over and nothing is owed
// to the model.
func (m *machine) settleCalls(t *turn) {
	if !t.waiting || m.callsOpen(t.number) {
		return
	}
	t.waiting = false
	if m.caps.RespondNeeded {
		t.calls = 0
		m.send(transport.Respond{})
		return
	}
	// This model went on while the tools ran, and has ended its answer; if it has
	// said nothing yet, it still owes one.
	t.modelDone = !t.modelAt.IsZero()
}

// toolCancelled notes that the model wants no answer any more. A tool that cannot
// be stopped goes on, and its result is never sent.
func (m *machine) toolCancelled(ev transport.ToolCancelled) {
	for i, c := range m.calls {
		if slices.Contains(ev.Calls, c.model) {
			m.calls[i].cancelled = true
			m.do(CancelTool{Call: c.id, Tool: c.tool})
		}
	}
}

// apply does what a tool's intent asks of the session.
func (m *machine) apply(intent registry.Intent) {
	switch intent.Type {
	case registry.IntentEndVoiceSession:
		m.endAfter(intent.After)
	case registry.IntentSuppressAudio:
		m.suppressed.audio = intent.Value
	case registry.IntentSuppressTranscript:
		m.suppressed.transcript = intent.Value
	case registry.IntentSetPendingMessage:
		m.pending = intent.Message
	}
}

// endAfter ends the session now, with the turn, or when the farewell was heard.
func (m *machine) endAfter(after registry.EndAfter) {
	if after == registry.EndNow || m.turn == nil {
		m.end(EndTool)
		return
	}
	m.ending = true
	m.endBy = m.at.Add(m.policy.FarewellWait)
	m.do(Ending{Reason: EndTool, After: m.policy.FarewellWait})
}
