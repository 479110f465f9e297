package orchestrator

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/orchestrator/policy"
	"voicegw/prompts/toolerror"
	"voicegw/registry"
	"voicegw/transport"
)

// call is one tool call that the model, the client or a running tool still waits for.
type call struct {
	id       string // ours
	model    string // the adapter's name for it; empty for a confirmed action
	provider string // the provider's id of it
	tool     string // as the client was told
	turn     int
	into     string // the call whose answer it gets; empty if it has one of its own
	repeated bool   // the same call announced again: it gets no answer of its own

	prepared *registry.Prepared // what runs for it; nil while nothing does
	keys     policy.Keys
	budget   json.RawMessage
	// confirmed is set for an action that a person has approved.
	confirmed *approval

	asked      json.RawMessage // its arguments, as the model wrote them
	askedAt    time.Time
	begunAt    time.Time // when it was to run
	handlerAt  time.Time // when its handler began; zero if it did not
	progressAt time.Time // when the client is told that it still runs
	stopping   bool      // it was told to stop
	cancelled  bool      // the model wants no answer any more
	superseded bool      // the model was answered before it had finished
}

// times are from the call until its handler began, and the handler's own, which env has;
// both zero where nothing ran.
func (c call) times(env registry.Envelope) (queued, ran time.Duration) {
	if c.handlerAt.IsZero() {
		return 0, 0
	}
	return max(c.handlerAt.Sub(c.askedAt), 0), time.Duration(env.Meta.DurationMS) * time.Millisecond
}

// open says whether the model still waits for the answer.
func (c call) open() bool { return !c.cancelled && !c.superseded && !c.repeated }

// waitsAside says whether the model goes on while the call runs.
func (c call) waitsAside(caps transport.Capabilities) bool {
	switch caps.Tools {
	case transport.ToolsAsync:
		return true
	case transport.ToolsDeclared:
		return c.prepared != nil && c.prepared.Tool().Behavior == registry.BehaviorNonBlocking
	default:
		return false
	}
}

// scheduling is when the model is to speak of a call's result.
func (c call) scheduling() transport.Scheduling {
	if c.prepared == nil {
		return ""
	}
	return transport.Scheduling(c.prepared.Tool().Scheduling)
}

// call finds a call by its id.
func (m *machine) call(id string) *call {
	i := slices.IndexFunc(m.calls, func(c call) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return &m.calls[i]
}

func (m *machine) forgetCall(id string) {
	m.calls = slices.DeleteFunc(m.calls, func(c call) bool { return c.id == id })
}

// callsOpen says whether calls of a turn are still running and wanted.
func (s State) callsOpen(turn int) bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.turn == turn && c.open() })
}

// wanted says whether anybody waits for the answer of a call or of one that joined it.
func (s State) wanted(id string) bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return (c.id == id || c.into == id) && c.open() })
}

// stopCalls stops what an interruption ends: calls that can be stopped, unless the
// model goes on beside them.
func (m *machine) stopCalls() {
	for i := range m.calls {
		c := &m.calls[i]
		if c.prepared == nil || c.into != "" || c.stopping || c.asking() || c.confirmed != nil || !c.prepared.Tool().Cancellable || c.waitsAside(m.caps) {
			continue
		}
		c.stopping = true
		m.do(CancelTool{Call: c.id, Tool: c.tool})
	}
}

// supersede answers the calls of earlier turns, for a model that does not withdraw
// them itself: before its next answer it must not owe anything to an old one.
func (m *machine) supersede() {
	if m.caps.ToolCancelNotice {
		return
	}
	for i := range m.calls {
		c := &m.calls[i]
		if !c.open() || c.model == "" {
			continue
		}
		m.send(transport.ToolResult{Call: c.model, Output: m.supersededBy(c).Encode()})
		c.withdraw()
	}
}

// supersededBy is the answer to a call that the user's next turn has overtaken.
func (m *machine) supersededBy(c *call) registry.Envelope {
	words := toolerror.Overtaken(c.tool)
	switch {
	case c.asking():
		words = toolerror.OvertakenQuestion(c.tool)
	case c.confirmed != nil || m.answersQuestion(c.id):
		words = toolerror.OvertakenApproval()
	}
	e := registry.NewError(registry.ErrorConflict, words)
	e.PartialSideEffects = c.prepared != nil && !c.asking() && c.prepared.Tool().SideEffects == registry.SideEffectsWrites
	return m.book.Refuse(c.tool, e)
}

// withdraw notes that the model has had its answer. Of what a person has approved it is
// told all the same, in a turn of its own.
func (c *call) withdraw() {
	if c.confirmed != nil {
		c.model = ""
		return
	}
	c.superseded = true
}

// watchCalls tells the client of calls that outlast their latency budget.
func (m *machine) watchCalls() {
	for i := range m.calls {
		c := &m.calls[i]
		if c.progressAt.IsZero() || m.at.Before(c.progressAt) {
			continue
		}
		c.progressAt = m.at.Add(m.policy.ProgressEvery)
		m.do(ToolProgress{Turn: c.turn, Call: c.id, Tool: c.tool, Running: m.at.Sub(c.begunAt)})
	}
}
