package orchestrator

import (
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// confirmPatience is how long the next agent's answer waits for the confirmation. A model handles its input in order.
const confirmPatience = 2 * time.Second

// switching is the state of a change of agent.
//
// A tool's SWITCH_AGENT is accepted with the tool's result and takes place when the model waits for no other result:
// before that result for a model that continues unasked, after it for one that answers on request. A model that needs
// a new connection for other instructions does not get the result; the history goes to the new connection, which begins
// as the next agent.
type switching struct {
	found  *NextAgent // brought for a tool's result; immutable
	next   *NextAgent // accepted, not yet current; may be nil. Immutable
	reason string
	words  string // the previous agent's message to the next

	confirmBy time.Time // deadline of the confirmation; zero if none is awaited
}

func (m *callControl) toolSwitches(intent registry.Intent, wanted bool) (refusal string) {
	found := m.switching.found
	m.switching.found = nil
	switch {
	case m.phase == PhaseEnding:
		return "the session is ending"
	case !wanted:
		return "the user has moved on"
	case m.switching.next != nil:
		return "another switch is under way"
	case found == nil || found.Name != intent.Agent:
		return "there is no such agent"
	}
	if no := m.calls.Book().MaySwitch(intent.Agent); no != nil {
		return no.Message
	}
	m.switching.next, m.switching.reason, m.switching.words = found, intent.Reason, intent.Message
	return ""
}

func (m *callControl) switchDue() bool {
	return m.switching.next != nil && m.phase == PhaseActive && m.calls.Awaited() == 0
}

// switchRelinks reports whether the due switch needs a new connection.
func (m *callControl) switchRelinks() bool {
	return m.down() || m.switching.next.Elsewhere || m.caps.Reconfigure != transport.ReconfigureLive
}

func (m *callControl) becomes() (next *NextAgent, words string) {
	s := m.switching
	m.switching.next, m.switching.reason, m.switching.words = nil, "", ""
	m.calls.Book().Switch(s.next.From, calls.Agent{Name: s.next.Name, Version: s.next.Version}, s.next.Tools, s.next.Budget)
	m.do(AgentSwitched{Turn: m.turns.last, From: s.next.From, To: s.next.Name, Reason: s.reason, Source: s.next.Source})
	return s.next, s.words
}

func (m *callControl) reconfigure() {
	next, _ := m.becomes()
	m.link.changed()
	m.do(Command{transport.Reconfigure{Instructions: next.Instructions, Tools: next.Declared}})
	m.switching.confirmBy = m.at.Add(confirmPatience)
}

// relinkAs replaces the connection by one that begins as the next agent, and returns the notice for that agent.
func (m *callControl) relinkAs() (notice string) {
	next, words := m.becomes()
	if !m.down() {
		if next.Elsewhere {
			m.link.fresh = false // the handle is another model's
		}
		m.unlinkPlanned(LinkAgent)
	}
	return prompts.SwitchedNotice(next.Name, words)
}

// answerElsewhere lets the next agent answer on a new connection, with the call's result unless the call was the
// switch.
func (m *callControl) answerElsewhere(a calls.Answer, record audit.Record) {
	words := []string{m.relinkAs()}
	if a.Tool != spec.AgentSwitch {
		words = append(words, prompts.LateResult(a.Tool, m.mark.JSON(a.Envelope.Encode())))
	}
	t := m.turn
	if t == nil || t.stage == done {
		m.openCausedTurn()
		t = m.turn
	}
	t.owedFrom, t.spoke, t.owedBy = m.at, false, time.Time{}
	m.do(Audit{Record: record, Told: true})
	m.sendNotice(words...)
}

// switchLater makes a switch that no call waits for: an operator's, or one whose call the user has overtaken.
func (m *callControl) switchLater() {
	switch {
	case !m.switchDue():
	case !m.switchRelinks():
		if !m.response.underWay && !m.atWork() {
			m.reconfigure()
		}
	case m.down():
		m.becomes()
	case m.quiet() && !m.at.Before(m.link.tries.due(m.at)) && !m.awaitsHandle():
		m.relinkAs()
	}
}

// reconfigured handles the model's confirmation. After a refusal the agent continues on a new connection.
func (m *callControl) reconfigured(ev transport.Reconfigured) {
	if m.switching.confirmBy.IsZero() {
		return
	}
	if ev.Err != nil && m.replaceable() {
		m.unlinkPlanned(LinkAgent)
		return
	}
	m.goOnAs()
}

func (m *callControl) goOnAs() {
	m.switching.confirmBy = time.Time{}
	if t := m.turn; t != nil {
		m.settleCalls(t, m.calls.Owed(t.number))
	}
}
