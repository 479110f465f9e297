package chat

import (
	"slices"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
)

// Persona is who answers: the character that the model plays, the tools that it may use, and its
// budget. It is not changed once an Agent has it.
type Persona struct {
	// Name is the name for requests. Version is that of its document; empty for one of the
	// configuration.
	Name, Version string
	// Instructions say who it is and what it is for.
	Instructions string
	// Tools are the ids of the only tools that it may use; nil means all.
	Tools []string
	// SwitchTo are the personas to which this one may hand its user over.
	SwitchTo []registry.SwitchTarget
	// Budget is what a turn's tool calls may use. A zero field is that of Options.Rules.
	Budget calls.Budget
}

// Name returns the name of the default persona.
func (a *Agent) Name() string { return a.opts.Persona.Name }

// Has reports whether there is a persona of that name; an empty one means the default persona.
func (a *Agent) Has(name string) bool { return name == "" || a.named(name) != nil }

// named returns the persona of that name as it is now, or nil.
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

// persona returns who answers: the one that the request asks for, or that has the conversation, or the
// default one.
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

// toolsOf returns the tools of a persona, with the one by which it hands its user over to other personas; nil
// if there are no tools.
func (t *turn) toolsOf(p *Persona) *registry.Snapshot { return t.toolsWith(p, nil) }

// toolsWith is toolsOf with these versions of tools, by the tools' ids, whatever else the user would draw.
func (t *turn) toolsWith(p *Persona, versions map[string]string) *registry.Snapshot {
	a := t.a
	if a.opts.Tools == nil {
		return nil
	}
	as := t.session()
	as.Agent, as.Now = p.Name, time.Now().UTC()
	there := slices.DeleteFunc(slices.Clone(p.SwitchTo), func(t registry.SwitchTarget) bool { return t.ID == p.Name || a.named(t.ID) == nil })
	return a.opts.Tools().Draw(t.drawsBy(), versions).For(registry.Selection{Session: as, Only: p.Tools, Live: a.opts.Live, SwitchTo: there})
}

// drawsBy is for whom the versions of tools are drawn: the user, or the conversation of somebody who has no name.
func (t *turn) drawsBy() string {
	if t.req.User.Anonymous() {
		return t.conv.ID
	}
	return t.req.User.String()
}

// rules returns the rules for the persona's calls.
func (p *Persona) rules(r calls.Policy) calls.Policy {
	r.Budget = p.Budget.Or(r.Budget)
	return r
}

// named is the persona as the agent of its calls.
func (p *Persona) named() calls.Agent { return calls.Agent{Name: p.Name, Version: p.Version} }
