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

type successor struct {
	persona  *Persona
	reason   string
	reported bool // an earlier attempt has reported the switch to the client and the audit log
}

func (t *turn) knowsAgent(env registry.Envelope) registry.Envelope {
	for _, i := range env.Intents {
		if i.Type != registry.IntentSwitchAgent || i.Agent != t.persona.Name && t.a.named(i.Agent) != nil {
			continue
		}
		env.Fail(registry.NewError(registry.ErrorNotFound, prompts.SwitchNotPossible(i.Agent, "the agent no longer exists")))
		return env
	}
	return env
}

func (t *turn) accept(i registry.Intent) (refusal string) {
	p := t.a.named(i.Agent)
	switch {
	case t.next != nil:
		return "another switch is in progress"
	case p == nil || p.Name == t.persona.Name:
		return "no such agent"
	}
	if no := t.calls.Book().MaySwitch(i.Agent); no != nil {
		return no.Message
	}
	t.next = &successor{persona: p, reason: i.Reason, reported: t.again}
	return ""
}

// switchPersona makes the persona that a call of the last round chose the current one. The turn keeps its budget.
func (t *turn) switchPersona() {
	next := t.next
	if next == nil {
		return
	}
	from := t.persona.Name
	t.next, t.persona, t.tools = nil, next.persona, t.toolsOf(next.persona)
	t.calls.Book().Switch(from, t.persona.named(), t.tools, next.persona.rules(t.a.opts.Rules).Budget)
	t.runs.SetAgent(t.persona.Name)
	t.entries = append(t.entries, conversation.Entry{At: time.Now(), Side: conversation.SideText,
		Role: conversation.RoleNotice, Text: prompts.AgentWentOn(from, t.persona.Name), System: true, Turn: t.number})
	if next.reported {
		return
	}
	t.a.opts.Logger.Info("switched to another agent", "conversation_id", t.conv.ID, "turn", t.number, "from", from, "to", t.persona.Name)
	t.audit(audit.Record{Event: audit.EventAgent, Time: time.Now().UTC().Truncate(time.Millisecond), Mode: spec.ModeText,
		TurnID: t.number, From: from, Why: next.reason})
	t.emit(&protocol.AgentSwitched{From: from, To: t.persona.Name, Reason: next.reason})
}
