package session

import (
	"cmp"
	"time"

	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/transport"
)

// This file is for connections of other protocols than voicegw.v1; see protocol.StartExtra.

// otherWire has what only such connections need of a session.
type otherWire struct{ *session }

func withExtra(setup transport.Setup, x *protocol.StartExtra) transport.Setup {
	if x != nil {
		setup.SilenceMS, setup.PrefixMS = cmp.Or(x.SilenceMS, setup.SilenceMS), cmp.Or(x.PrefixMS, setup.PrefixMS)
	}
	return setup
}

func (a *Agent) adapted(start *startMessage) *Agent {
	x := start.Extra
	if x == nil {
		return a
	}
	b := *a
	if x.Instructions != nil {
		b.Instructions = *x.Instructions
	}
	if x.Answers {
		b.Greeting = ""
	}
	b.Notice = cmp.Or(x.Notice, b.Notice)
	if x.Model != "" {
		b.Provider, b.Model = start.Provider, x.Model
	}
	return &b
}

// pastOf returns the earlier conversation for a model that takes it only at the beginning.
func pastOf(x *protocol.StartExtra, caps transport.Capabilities) (past []transport.Past) {
	if x == nil || caps.AddItem != transport.AddItemNone || caps.History == transport.HistoryNone {
		return nil
	}
	for _, e := range x.History {
		switch transport.Role(e.Role) {
		case transport.RoleUser:
			past = append(past, transport.PastUser{Text: e.Text})
		case transport.RoleAssistant:
			past = append(past, transport.PastAssistant{Text: e.Text})
		default:
			past = append(past, transport.PastNote{Text: e.Text})
		}
	}
	return past
}

func earlierPart(m *protocol.AddItem) orchestrator.UserContext {
	role := transport.Role(m.Role)
	if role != transport.RoleUser && role != transport.RoleAssistant {
		role = "" // the client's, so it is not the system's
	}
	return orchestrator.UserContext{Role: role, Text: m.Text}
}

// tellHistory gives the model the conversation before the session, unless its connection began with it.
func (s otherWire) tellHistory() {
	x := s.start.Extra
	if x == nil {
		return
	}
	known := len(pastOf(x, s.model.link().info().Capabilities)) > 0
	for i := range x.History {
		in := earlierPart(&x.History[i])
		in.Known = known
		s.dispatch(in)
	}
	x.History = nil
}

func (l Limits) audioAhead(x *protocol.StartExtra) time.Duration {
	if x != nil {
		return cmp.Or(x.AudioAhead, l.AudioAhead)
	}
	return l.AudioAhead
}

// answerReport reports the progress of the model's answer to a client that asked for it. The session's mu guards it.
type answerReport struct {
	turn    int                 // the latest turn that was reported as over
	settled bool                // all calls that the model has made are known
	waiting bool                // the open turn was reported as waiting
	unasked map[string]struct{} // the client's calls that it has not got; nil if it never asks for reports
}

// runs records a call that is about to run. The caller must hold the session's mu.
func (c *clientCalls) runs(do calls.Run) {
	if c != nil && c.answer.unasked != nil && do.Prepared.Tool().ByClient() {
		c.answer.unasked[do.Call] = struct{}{}
		c.answer.waiting = false
	}
}

func (c *clientCalls) asked(call string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.ended(call)
	c.report(false)
}

// ended records that the client has got a call, or never gets it. The caller must hold the session's mu.
func (c *clientCalls) ended(call string) {
	if c != nil {
		delete(c.answer.unasked, call)
	}
}

// report sends the end of an answer, or that it waits for calls, once they are settled and the client has got its own.
// The caller must hold the session's mu.
func (c *clientCalls) report(settled bool) {
	if c == nil || c.answer.unasked == nil {
		return
	}
	s, r := c.s, &c.answer
	a := s.state.Answer()
	r.settled = a.Waiting && (r.settled || settled)
	switch {
	case a.Turn == 0 || a.Turn == r.turn:
	case a.Over:
		r.turn, r.waiting = a.Turn, false
		s.send(&protocol.AnswerEnded{Header: inTurn(a.Turn), Usage: usageOf(a.Usage, false)})
	case !a.Waiting:
		r.waiting = false
	case r.settled && !r.waiting && len(r.unasked) == 0:
		r.waiting = true
		s.send(&protocol.AnswerEnded{Header: inTurn(a.Turn), Waiting: true, Usage: usageOf(a.Usage, false)})
	}
}

// reportWaiting is called after all events that the model has sent, so that all calls of a message are known.
func (c *clientCalls) reportWaiting() {
	if c == nil || c.answer.unasked == nil {
		return
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.report(true)
}

func (s otherWire) reconfigure(m *protocol.Reconfigure) {
	next, cause := s.changed(m)
	switch {
	case cause != nil:
		s.clientError(cause.Code, cause.Field, "%s", cause.Message)
	case next != nil:
		s.dispatch(orchestrator.SwitchAgent{Agent: next})
	}
}

// changed returns the present agent with those changes; nil if they change nothing for the model. Earlier changes may
// still wait for the end of an answer, so it adds to the newest. The caller must hold inbound.
func (s otherWire) changed(m *protocol.Reconfigure) (*orchestrator.NextAgent, *Cause) {
	was := s.model.redial.Load()
	newest := was
	if c := s.byClient.changed; c != nil && c.agent.Name == was.agent.Name {
		newest = c
	}
	o := was.m.options()
	r := *newest
	all, cause := o.declare(s.byClient.fixed, m.Tools, s.start.Extra)
	if cause != nil {
		return nil, cause
	}
	a := *r.agent
	if m.Instructions != nil {
		a.Instructions = *m.Instructions
	}
	r.agent, r.all = &a, all
	r.tools = o.toolsFor(&a, all, registry.Session{UserID: s.user.String(), Vouched: s.vouched, Scopes: s.scopes})
	next, err := r.follow(s.session, was)
	if err != nil {
		return nil, refusal(0, protocol.CodeNotAvailable, "%s.", err)
	}
	if before := newest.setup(newest.provider); before.Instructions == next.Instructions && sameTools(before.Tools, next.Declared) {
		return nil, nil
	}
	s.byClient.changed = &r
	return next, nil
}

func sameTools(a, b []transport.Tool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Description != b[i].Description || string(a[i].Parameters) != string(b[i].Parameters) {
			return false
		}
	}
	return true
}

// CheckTools reports whether a client could declare these tools; see protocol.StartExtra.AnyTools. The error is a
// [*Cause] with the field.
func (m *Manager) CheckTools(tools []protocol.ClientTool) error {
	if _, cause := m.options().declare(m.options().snapshot(), tools, &protocol.StartExtra{AnyTools: true}); cause != nil {
		return cause
	}
	return nil
}

func (s otherWire) transfers() []string {
	if s.start.Extra == nil {
		return nil
	}
	return s.start.Extra.Transfers
}
