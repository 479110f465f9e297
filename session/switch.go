package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/textutil"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/transport"
)

// The errors of Manager.SwitchAgent.
var (
	// ErrNotHere: the session does not run on this node.
	ErrNotHere = errors.New("session: not on this node")
	// ErrAgent: the agent cannot continue the session. The wrapping error has the reason.
	ErrAgent = errors.New("session: the agent cannot continue the session")
)

// report handles the result of a call. If it switches the agent, the new agent is prepared first; if that fails, the
// call fails.
func (h toolHost) report(in calls.Input) {
	s := h.s
	done, ok := in.(calls.Finished)
	if !ok || !done.Envelope.OK {
		s.dispatch(orchestrator.OfCall{In: in})
		return
	}
	for _, intent := range done.Envelope.Intents {
		if intent.Type != registry.IntentSwitchAgent {
			continue
		}
		next, err := s.successor(intent.Agent)
		if err != nil {
			s.log().Info("a tool's agent switch failed", "agent", clip(intent.Agent), "error", err)
			done.Envelope.Fail(registry.NewError(registry.ErrorNotFound, prompts.SwitchNotPossible(clip(intent.Agent), err.Error())))
			break
		}
		s.dispatch(orchestrator.AgentFound{Agent: next})
		break
	}
	s.dispatch(orchestrator.OfCall{In: done})
}

// WhyNot returns the reason in an error of Manager.SwitchAgent, as the end of a sentence; empty without one.
func WhyNot(err error) string {
	_, why, _ := strings.Cut(err.Error(), ErrAgent.Error()+": ")
	return why
}

// successor prepares the named agent to continue the session. The error is the end of a sentence. The result's Source
// is the redialer of the agent's connections.
func (s *session) successor(name string) (*orchestrator.NextAgent, error) {
	was := s.model.redial.Load()
	if was == nil {
		return nil, errors.New("the session has not begun")
	}
	m, present := was.m, s.agent.Load()
	a := m.options().agent(name)
	switch {
	case name == "" || a == nil:
		return nil, errors.New("the agent no longer exists")
	case a.Name == present.Name:
		return nil, errors.New("it is the current agent")
	case a.Provider != "" && s.start.Provider != "" && a.Provider != s.start.Provider:
		return nil, errors.New("it uses another provider than the client requested")
	}
	r := *was
	r.agent, r.tools = a, m.options().toolsFor(a, was.all, registry.Session{UserID: s.user.String(), Vouched: s.vouched, Scopes: s.scopes})
	r.provider = m.options().providerOf(&r.modelRequest)
	now := s.model.link().info()
	setup := m.options().setup(&r.modelRequest, r.provider)
	next := &orchestrator.NextAgent{
		From: present.Name, Name: a.Name, Version: a.Version, Tools: r.tools,
		Budget: a.Budget.Or(s.opts.Policy.Tools.Budget), Instructions: setup.Instructions, Declared: setup.Tools,
		Elsewhere: r.provider != was.provider || setup.Model != was.setup(was.provider).Model,
	}
	live := !next.Elsewhere && now.Capabilities.Reconfigure == transport.ReconfigureLive
	if !live && !(s.opts.Policy.Relink && orchestrator.Replaceable(now.Capabilities)) {
		return nil, errors.New("this session's model cannot change its instructions")
	}
	next.Source = &r
	return next, nil
}

// agentSwitched makes another agent the session's. The caller must hold mu.
func (s *session) agentSwitched(a orchestrator.AgentSwitched) {
	r, ok := a.Source.(*redialer)
	if !ok {
		return // only steps of successor's results come here
	}
	version := s.agent.Load().Version
	s.agent.Store(r.agent)
	s.tools.Store(r.tools)
	s.model.redial.Store(r)
	s.calls.SetAgent(a.To)
	s.place.Update(func(is *store.SessionRecord) {
		is.Agent, is.AgentVersion, is.Provider = a.To, r.agent.Version, r.provider
	})
	s.log().Info("the agent was switched", "from", a.From, "to", a.To, "from_version", version, "version", r.agent.Version, "turn", a.Turn)
	s.audit(audit.Record{Event: audit.EventAgent, Time: time.Now().UTC().Truncate(time.Millisecond), Mode: spec.ModeVoice,
		TurnID: a.Turn, From: a.From, Why: a.Reason})
	s.send(&protocol.AgentSwitched{Header: inTurn(a.Turn), From: a.From, To: a.To, Reason: a.Reason})
}

// SwitchAgent switches the session to another agent when its model owes no answer. Any agent is allowed, whatever the
// current one may switch to. The error wraps ErrNotHere or ErrAgent.
func (m *Manager) SwitchAgent(id, agent, reason string) error {
	s := m.roster.visit(id)
	if s == nil {
		return ErrNotHere
	}
	defer s.visitors.Done()
	next, err := s.successor(agent)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAgent, err)
	}
	s.dispatch(orchestrator.SwitchAgent{Agent: next, Reason: textutil.Shorten(reason, registry.MaxReason)})
	return nil
}
