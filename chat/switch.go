package chat

import (
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// successor is a persona to which the present one has handed the user over.
type successor struct {
	persona *Persona
	reason  string
	told    bool // an earlier attempt at the message has told the client and the audit
}

// knowsAgent returns the answer of a call; if it hands the user over to a persona that is gone by now, it
// returns an error instead.
func (t *turn) knowsAgent(env registry.Envelope) registry.Envelope {
	for _, i := range env.Intents {
		if i.Type != registry.IntentSwitchAgent || i.Agent != t.persona.Name && t.a.named(i.Agent) != nil {
			continue
		}
		env.Fail(registry.NewError(registry.ErrorNotFound, prompts.SwitchNotPossible(i.Agent, "there is no such agent any more")))
		return env
	}
	return env
}

// accept takes a SWITCH_AGENT, or returns why it is refused.
func (t *turn) accept(i registry.Intent) (refusal string) {
	p := t.a.named(i.Agent)
	switch {
	case t.next != nil:
		return "another switch is under way"
	case p == nil || p.Name == t.persona.Name:
		return "there is no such agent"
	}
	if no := t.calls.Book().MaySwitch(i.Agent); no != nil {
		return no.Message
	}
	t.next = &successor{persona: p, reason: i.Reason, told: t.again}
	return ""
}

// become lets the persona go on to which a call of the last round has handed the user over. The turn keeps
// its budget.
func (t *turn) become() {
	next := t.next
	if next == nil {
		return
	}
	from := t.persona.Name
	t.next, t.persona, t.tools = nil, next.persona, t.toolsOf(next.persona)
	t.calls.Book().Switch(from, t.persona.named(), t.tools, next.persona.rules(t.a.opts.Rules).Budget)
	t.runs.As(t.persona.Name)
	t.entries = append(t.entries, conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleNotice, Text: prompts.AgentWentOn(from, t.persona.Name), System: true, Turn: t.number})
	if next.told {
		return
	}
	t.a.opts.Logger.Info("another agent goes on", "conversation_id", t.conv.ID, "turn", t.number, "from", from, "to", t.persona.Name)
	t.audit(audit.Record{Event: audit.EventAgent, Time: time.Now().UTC().Truncate(time.Millisecond), Mode: spec.ModeText, TurnID: t.number, From: from, Why: next.reason})
	t.emit(&protocol.AgentSwitched{From: from, To: t.persona.Name, Reason: next.reason})
}
