package chat

import (
	"slices"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Persona is a character that the model plays, with its tools and budget. It must not change while an Agent has it.
type Persona struct {
	// Version is the version of the persona's document; empty for a configured persona.
	Name, Version string
	Instructions  string                  // describe the persona's character and task
	Tools         []string                // the ids of the tools it may use; nil means all
	SwitchTo      []registry.SwitchTarget // the personas that it may hand the user over to
	Budget        calls.Budget            // limits the tool calls of a turn. Zero fields use Options.Rules.
}

// Name returns the name of the default persona.
func (a *Agent) Name() string { return a.opts.Persona.Name }

// Has reports whether a persona exists; an empty name means the default persona.
func (a *Agent) Has(name string) bool { return name == "" || a.named(name) != nil }

func (a *Agent) named(name string) *Persona {
	if a.opts.Personas != nil {
		if p := a.opts.Personas(name); p != nil {
			return p
		}
	}
	if name == a.opts.Persona.Name {
		return &a.opts.Persona
	}
	return nil
}

// persona returns the persona that answers: the requested one, the conversation's, or the default.
func (a *Agent) persona(asked, has string) *Persona {
	for _, name := range []string{asked, has, a.opts.Persona.Name} {
		if name == "" {
			continue
		}
		if p := a.named(name); p != nil {
			return p
		}
	}
	return &a.opts.Persona
}

// toolsOf returns the persona's tools, including the one that switches agents, or nil. versions fixes versions by tool
// id, instead of those drawn for the user or, if anonymous, for the conversation.
func (t *turn) toolsOf(p *Persona, versions map[string]string) *registry.Snapshot {
	a := t.a
	if a.opts.Tools == nil {
		return nil
	}
	as := t.session()
	as.Agent, as.Now = p.Name, time.Now().UTC()
	there := slices.DeleteFunc(slices.Clone(p.SwitchTo), func(t registry.SwitchTarget) bool {
		return t.ID == p.Name || a.named(t.ID) == nil
	})
	by := t.req.User.String()
	if t.req.User.Anonymous() {
		by = t.conv.ID
	}
	return a.opts.Tools().Draw(by, versions).For(registry.Selection{Session: as, Only: p.Tools, Live: a.opts.Live,
		SwitchTo: there})
}

func (p *Persona) rules(r calls.Policy) calls.Policy {
	r.Budget = p.Budget.Or(r.Budget)
	return r
}

func (p *Persona) named() calls.Agent { return calls.Agent{Name: p.Name, Version: p.Version} }

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
	t.next, t.persona, t.tools = nil, next.persona, t.toolsOf(next.persona, nil)
	t.calls.Book().Switch(from, t.persona.named(), t.tools, next.persona.rules(t.a.opts.Rules).Budget)
	t.runs.SetAgent(t.persona.Name)
	t.addEntry(time.Now(), conversation.RoleNotice, prompts.AgentWentOn(from, t.persona.Name)).System = true
	if next.reported {
		return
	}
	t.a.opts.Logger.Info("switched to another agent", "conversation_id", t.conv.ID, "turn", t.number, "from", from, "to", t.persona.Name)
	t.audit(audit.Record{Event: audit.EventAgent, Time: audit.At(time.Now()), Mode: spec.ModeText,
		TurnID: t.number, From: from, Why: next.reason})
	t.emit(&protocol.AgentSwitched{From: from, To: t.persona.Name, Reason: next.reason})
}
