package session

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Agent is the character that the model plays. It is not changed once a Manager has it.
type Agent struct {
	// Name is the name that clients use in session.start; empty means "default".
	Name string
	// Version is the version of the agent's document; empty for an agent of the configuration. All is
	// that of all agents with documents, when this one was looked up.
	Version, All string
	// Instructions is the model's system text, or what Options.Instructions makes it of.
	Instructions string
	// Greeting tells the model how to open a session. If it is empty, the user speaks first.
	Greeting string
	// Voices is the voice for each provider, by its name; without an entry, the provider chooses.
	Voices map[string]string
	// Language is a BCP 47 tag; if it is empty, the model chooses.
	Language string
	// Provider is with whom the agent speaks, Model with which of its models. An empty Provider is
	// Options.Provider, an empty Model the provider's own.
	Provider, Model string
	// Tools are the ids of the only tools that the agent may use; nil means all.
	Tools []string
	// SwitchTo are the agents to which this one may hand its user over.
	SwitchTo []registry.SwitchTarget
	// Budget is what a turn's tool calls may use. A zero field is that of Options.Policy.
	Budget calls.Budget
}

// Agents are the agents that clients may ask for. The methods may be called concurrently.
type Agents interface {
	// Agent returns the agent with that name as it is now; nil if no session may begin with it. It does
	// not wait.
	Agent(name string) *Agent
	// Pinned returns the agent of a session that goes on here: in that version if anybody still has it,
	// otherwise as it is now; nil if no agent has that name.
	Pinned(ctx context.Context, name, version string) *Agent
	// Names lists the agents that a client may ask for, sorted.
	Names() []string
}

// model returns the model that the agent wants of a provider; empty for the provider's own.
func (a *Agent) model(provider string) string {
	if provider == a.Provider {
		return a.Model
	}
	return ""
}

// policy returns the policy of the agent's sessions.
func (a *Agent) policy(p orchestrator.Policy) orchestrator.Policy {
	p.Tools.Budget = a.Budget.Or(p.Tools.Budget)
	return p
}

// rulesOf returns the rules of an agent's sessions. All sessions share them whose agents have no budget of
// their own.
func (o *Options) rulesOf(a *Agent) *orchestrator.Rules {
	if a.Budget == (calls.Budget{}) {
		return o.rules
	}
	return orchestrator.NewRules(a.policy(o.Policy))
}

// agent returns the agent with that name as it is now; an empty name is the default one's. Nil if no
// session may begin with it.
func (o *Options) agent(name string) *Agent {
	name = cmp.Or(name, o.Agent.Name)
	if o.Agents != nil {
		if a := o.Agents.Agent(name); a != nil {
			return a
		}
	}
	if name == o.Agent.Name {
		return &o.Agent
	}
	return nil
}

// pinned returns the agent of a session that another process has run. Where nobody knows it any more,
// the session goes on with the default one.
func (o *Options) pinned(ctx context.Context, name, version string, logger *slog.Logger) *Agent {
	if version == "" && name == o.Agent.Name {
		return &o.Agent // as this node's configuration has it, whatever was edited since
	}
	var a *Agent
	if o.Agents != nil {
		a = o.Agents.Pinned(ctx, name, version)
	}
	if a == nil {
		a = o.agent("")
	}
	if a.Name != name || a.Version != version {
		logger.Warn("the agent of a session that was taken over is not known in its version any more", "agent", name, "agent_version", version,
			"goes_on_with", a.Name, "its_version", a.Version)
	}
	return a
}

// Agents lists the agents that a client may ask for, the default one first.
func (m *Manager) Agents() []string { return m.options().agentNames() }

func (o *Options) agentNames() []string {
	list := []string{o.Agent.Name}
	if o.Agents != nil {
		for _, name := range o.Agents.Names() {
			if name != o.Agent.Name {
				list = append(list, name)
			}
		}
	}
	return list
}

// Agent returns the name of the agent for clients that ask for none.
func (m *Manager) Agent() string { return m.options().Agent.Name }

// HasAgent reports whether a session may begin with an agent of that name; an empty one means the
// default agent.
func (m *Manager) HasAgent(name string) bool { return m.options().agent(name) != nil }

// checkAgent refuses an agent that does not exist.
func (o *Options) checkAgent(start *startMessage) *Cause {
	if o.agent(start.Agent) == nil {
		return o.noAgent(start.Agent)
	}
	return nil
}

// mostNamed is how many agents a refusal names.
const maxNamed = 10

func (o *Options) noAgent(name string) *Cause {
	names := o.agentNames()
	there := `"` + strings.Join(names[:min(len(names), maxNamed)], `", "`) + `"`
	if len(names) > maxNamed {
		there += " and more"
	}
	return refusal(protocol.CloseUnknownTarget, protocol.CodeUnknownAgent, "There is no agent %q here; there is %s.", clip(name), there)
}

// choose gives a guest the agent that it has asked for, and the agent's tools. The session keeps both.
func (g *startup) choose() *Cause {
	m := g.m
	a := m.options().agent(g.start.Agent)
	switch {
	case a == nil:
		return m.options().noAgent(g.start.Agent)
	case a.Provider != "" && g.start.Provider != "" && g.start.Provider != a.Provider:
		return refusal(protocol.CloseUnknownTarget, protocol.CodeUnknownProvider, "The agent %q speaks with the provider %q alone; leave provider out.", a.Name, a.Provider)
	}
	g.agent = a
	return nil
}

// drawsBy is for whom the versions of tools are drawn: the user, or the conversation of somebody who has no name,
// which may have been held in text before.
func drawKey(who user.User, conversation, session string) string {
	if who.Anonymous() {
		return cmp.Or(conversation, session)
	}
	return who.String()
}

// equip returns what of a snapshot, which may be nil, the sessions of an agent have, for a user of whom
// the session says all that counts. The agent is given the tool with which it hands its user over to agents
// with which a session may begin.
func (o *Options) toolsFor(a *Agent, tools *registry.Snapshot, s registry.Session) *registry.Snapshot {
	s.Agent, s.Mode, s.Now = a.Name, spec.ModeVoice, time.Now().UTC()
	there := slices.DeleteFunc(slices.Clone(a.SwitchTo), func(t registry.SwitchTarget) bool { return t.ID == a.Name || o.agent(t.ID) == nil })
	return tools.For(registry.Selection{Session: s, Only: a.Tools, Live: o.Live, SwitchTo: there})
}

// providerOf returns the provider that a client has asked for, or that its agent has.
func (o *Options) providerOf(w *modelRequest) string {
	provider := cmp.Or(w.start.Provider, w.agent.Provider, o.Provider)
	if o.Transports[provider] == nil {
		return o.Provider // the agent's is not configured on this node
	}
	return provider
}

// toolsVersion returns the version of the session's registry; empty without tools.
func (s *session) toolsVersion() string {
	tools := s.tools.Load()
	if tools == nil {
		return ""
	}
	return tools.ToolsVersion()
}
