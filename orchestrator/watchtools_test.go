package orchestrator

import (
	"reflect"
	"strings"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport"
)

// toolWatch is about calls: each has one terminal for the model, one end for the client, and one line in the audit.
type toolWatch struct {
	calls    map[string]*watchedCall   // by our id
	byModel  map[string]*watchedCall   // by the adapter's
	starting *transport.ToolCall       // of this step, until its ToolStarted
	finished map[string]calls.Finished // of this step, by call
	over     map[int]bool              // turns that have used up their budget
	nothing  bool                      // a call finished that does not run
}

// watchedCall is the state of a call.
type watchedCall struct {
	id, model, provider, tool, args string
	turn                            int
	answered                        bool // the model has its terminal: an answer
	cancelled                       bool // or its own cancellation
	repeated                        bool // announced again during the first: it gets no answer
	unsure                          bool // other calls share its id: perhaps it gets no answer
	ended, audited                  bool
	record                          audit.Record
	askedAt                         time.Time
	run                             *calls.Run
	finished                        bool
	stopped                         bool
	progressAt                      time.Time // the next one is not before
}

func newToolWatch() toolWatch {
	return toolWatch{calls: map[string]*watchedCall{}, byModel: map[string]*watchedCall{}, over: map[int]bool{}}
}

func (w *watcher) toolInput(in Input) {
	w.tools.starting, w.tools.finished, w.tools.nothing = nil, map[string]calls.Finished{}, false
	switch in := bareInput(in).(type) {
	case LinkLost:
		w.linkGone()
	case calls.Finished:
		if !w.resultHeld(in) {
			w.toolFinished(in)
		}
	case FromModel:
		switch ev := in.Event.(type) {
		case transport.ToolCall:
			if !w.turns.ended {
				w.tools.starting = &ev
			}
		case transport.ToolCancelled:
			for _, call := range ev.Calls {
				if c := w.tools.byModel[call]; c != nil && !c.answered && !c.repeated {
					c.cancelled = true
				}
			}
		}
	}
}

func (w *watcher) toolFinished(in calls.Finished) {
	w.tools.finished[in.Call] = in
	if c := w.tools.calls[in.Call]; c != nil && c.run != nil && !c.finished {
		c.finished = true
		w.effectDone(c, in.Envelope)
	} else {
		w.tools.nothing = true
	}
}

func (w *watcher) toolAction(a Action) {
	switch a := bare(a).(type) {
	case calls.ToClient:
		w.toolMessage(a.Message)
	case ToolEnded:
		w.toolEnded(a)
	case calls.Run:
		w.toolRuns(a)
	case calls.Cancel:
		w.toolStops(a)
	case SwitchLink, Moving, SayAgain:
		w.linkGone()
	case Audit:
		if a.Record.Event == audit.EventTool {
			w.toolAudited(a.Record)
		}
	case Command:
		switch cmd := a.Command.(type) {
		case transport.ToolResult:
			w.toolResult(cmd)
		case transport.Respond:
			if w.tools.over[w.turns.open] && w.caps.ToolsOff && !cmd.ToolsOff {
				w.fail("turn %d is over its budget, and an answer with tools was asked for", w.turns.open)
			}
		case transport.UserText:
			w.nothingOwed()
		}
	}
}

// nothingOwed: a model that withdraws nothing gets a new turn only when its old calls are answered.
func (w *watcher) nothingOwed() {
	if w.caps.ToolCancelNotice {
		return
	}
	for id, c := range w.tools.calls {
		if c.turn < w.turns.open && c.model != "" && !c.ended && !c.answered && !c.cancelled && !c.repeated && !c.unsure {
			w.fail("the model is given turn %d and owes an answer to %s: %+v", w.turns.open, id, c)
		}
	}
}

// linkGone: a call of the old connection gets no answer on the next one.
func (w *watcher) linkGone() {
	for _, c := range w.tools.calls {
		if c.model != "" && !c.answered && !c.cancelled && !c.repeated && !c.ended {
			delete(w.tools.byModel, c.model)
			c.model = ""
		}
	}
}

func (w *watcher) toolMessage(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.ToolStarted:
		w.toolStarted(m)
	case *protocol.ToolProgress:
		w.toolProgress(m)
	}
}

func (w *watcher) toolStarted(a *protocol.ToolStarted) {
	if w.tools.calls[a.CallID] != nil {
		w.fail("call %s began twice", a.CallID)
	}
	c := &watchedCall{id: a.CallID, tool: a.Tool, turn: a.Turn, askedAt: w.at, progressAt: w.at.Add(time.Second)} // the latency budget of all tools here
	if ev := w.tools.starting; ev != nil {
		c.model, c.provider, c.args = ev.Call, ev.ID, canonicalArgs(ev.Args)
		c.repeated, c.unsure = w.announcedAgain(c)
		w.tools.byModel[ev.Call], w.tools.starting = c, nil
	}
	w.tools.calls[a.CallID] = c
}

// announcedAgain reports whether the model waits for one answer to two announcements. It is unsure if the model has
// used the id for different calls.
func (w *watcher) announcedAgain(c *watchedCall) (again, unsure bool) {
	if !c.named() || w.policy.SpokenConfirmation && c.tool == calls.ConfirmAction {
		return false, false
	}
	for _, o := range w.tools.calls {
		switch {
		case o.provider != c.provider:
		case o.tool != c.tool || o.args != c.args:
			unsure = true
		case o.model != "" && !o.repeated && !o.answered && !o.cancelled && !o.ended: // on this connection
			again = true
		}
	}
	return again && !unsure, unsure
}

// named reports whether the provider's id names the call permanently.
func (c *watchedCall) named() bool {
	return len(c.provider) > 8 && !strings.HasPrefix(c.provider, "tmp")
}

// name is the same for a call and its repeat.
func (c *watchedCall) name() string { return "id " + c.provider + " " + c.tool + " " + c.args }

func canonicalArgs(raw []byte) string { return registry.Decode(raw).Text() }

func (w *watcher) toolResult(r transport.ToolResult) {
	c := w.tools.byModel[r.Call]
	switch {
	case c == nil:
		w.fail("an answer to %s, which was never called", r.Call)
	case c.answered:
		w.fail("invariant 1: call %s was answered twice", r.Call)
	case c.cancelled:
		w.fail("invariant 1: call %s was answered after its cancellation", r.Call)
	case c.repeated:
		w.fail("invariant 1: call %s was announced twice and answered twice", r.Call)
	}
	c.answered = true
}

func (w *watcher) toolRuns(a calls.Run) {
	c := w.tools.calls[a.Call]
	if c == nil { // approved after the session: it was never shown
		c = &watchedCall{id: a.Call, tool: a.Prepared.Tool().ToolID, turn: a.Turn}
		w.tools.calls[a.Call] = c
		if !w.turns.ended || a.Reference == "" {
			w.fail("call %s runs without a start", a.Call)
		}
	}
	if c.run != nil {
		w.fail("call %s runs twice", a.Call)
	}
	c.run = &a
	working := 0
	for _, c := range w.tools.calls {
		if c.run != nil && !c.finished {
			working++
		}
	}
	if working > 4 {
		w.fail("%d tools run at once", working)
	}
}

func (w *watcher) toolStops(a calls.Cancel) {
	c := w.tools.calls[a.Call]
	if c == nil || c.run == nil || c.finished || c.stopped || !c.run.Prepared.Tool().Cancellable || c.run.Reference != "" {
		w.fail("call %s was stopped, but cannot be: %+v", a.Call, c)
	}
	c.stopped = true
}

func (w *watcher) toolProgress(a *protocol.ToolProgress) {
	c := w.tools.calls[a.CallID]
	if c == nil || c.ended || w.at.Before(c.progressAt) {
		w.fail("progress of %s is too early, too late or about no call: %+v", a.CallID, c)
	}
	c.progressAt = w.at.Add(calls.ProgressEvery)
}

// toolAudited: each call has one true record, before its end.
func (w *watcher) toolAudited(r audit.Record) {
	c := w.tools.calls[r.CallID]
	if c == nil && w.turns.ended && r.Confirmation == string(calls.OutcomeApproved) && r.CacheHit {
		c = &watchedCall{id: r.CallID, tool: r.ToolID} // approved after the session, and done before
		w.tools.calls[r.CallID] = c
	}
	if c == nil || c.audited {
		w.fail("call %q was audited twice, or never was: %+v", r.CallID, r)
	}
	if c.ended { // its answer had to wait for a turn of its own
		c.record.Delivered, c.record.NotDelivered = r.Delivered, r.NotDelivered
		if !w.reportedAsText(c) || !reflect.DeepEqual(c.record, r) {
			w.fail("call %s was audited after its end, with another record: %+v", r.CallID, r)
		}
		c.audited = true
		return
	}
	c.audited, c.record = true, r
	_, ran := w.tools.finished[r.CallID]
	if len(r.Intents) > 0 && (!ran || !r.OK || r.CacheHit) {
		w.fail("the intents of call %s were applied although it did not succeed: %+v", r.CallID, r)
	}
	if c.run != nil && !ran {
		w.fail("call %s was audited before it had finished", r.CallID)
	}
	if r.Delivered && (c.cancelled && !w.reportedAsText(c) || c.repeated || w.turns.ended) {
		w.fail("call %s was not delivered, and the audit says it was: %+v", r.CallID, c)
	}
}

func (w *watcher) toolEnded(a ToolEnded) {
	if w.tools.nothing {
		w.fail("call %s ended with a result, but does not run", a.Call)
	}
	c := w.tools.calls[a.Call]
	if c == nil || c.ended || c.tool != a.Tool || !c.audited && !(a.Delivered && w.reportedAsText(c)) {
		w.fail("call %s ended twice, without a start, under another name or before its audit: %+v", a.Call, c)
	}
	c.ended = true
	w.inspected(c, a)
	if e := a.Envelope.Error; e != nil && e.Type == registry.ErrorBudgetExceeded && a.Envelope.Meta.Budget != nil {
		w.tools.over[a.Turn] = true
	}
	if a.Delivered && a.Envelope.OK && c.named() {
		w.effects.done[c.name()] = c.id // a repeat is answered from the store
	}
	if a.Delivered && c.model != "" && !c.answered && !w.reportedAsText(c) {
		w.fail("call %s is said to be delivered, and the model had no answer", a.Call)
	}
}

// inspected: the observer gets the record of the audit, and a call that ran has its times.
func (w *watcher) inspected(c *watchedCall, a ToolEnded) {
	if !c.audited {
		c.record = a.Record
	}
	if !reflect.DeepEqual(a.Record, c.record) {
		w.fail("call %s has a record that is not the audit's: %+v", a.Call, a.Record)
	}
	began := time.Time{}
	if in, ok := w.tools.finished[a.Call]; ok {
		began = in.BegunAt
	}
	switch {
	case began.IsZero() && (a.Queued != 0 || a.Took != 0):
		w.fail("call %s did not run, and has waited %s and run %s", a.Call, a.Queued, a.Took)
	case !began.IsZero() && (a.Queued < 0 || a.Queued > w.at.Sub(c.askedAt) || a.Took.Milliseconds() != a.Envelope.Meta.DurationMS):
		w.fail("call %s of %s, begun at %s, has waited %s and run %s", a.Call, c.askedAt, began, a.Queued, a.Took)
	}
}

// reportedAsText reports whether an approved call is reported in a turn of its own: the model may have no call that waits
// for its answer, and it need not have run.
func (w *watcher) reportedAsText(c *watchedCall) bool {
	return c.model == "" || c.run != nil && c.run.Reference != ""
}

func (w *watcher) toolsOver() {
	for id, c := range w.tools.calls {
		if !c.audited {
			w.t.Errorf("call %s is missing from the audit: %+v", id, c)
		}
		if c.run != nil && !c.finished {
			w.t.Errorf("the test itself has not finished call %s", id)
		}
	}
}

// settled checks an open session in which nothing runs any more.
func (w *watcher) settled() {
	for id, c := range w.tools.calls {
		if !c.ended {
			w.t.Errorf("call %s never ended for the client: %+v", id, c)
		}
		if c.model != "" && !c.answered && !c.cancelled && !c.repeated && !c.unsure {
			w.t.Errorf("invariant 1: call %s has no terminal: %+v", id, c)
		}
	}
}
