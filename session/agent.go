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

// Agent is the character that the model plays. A Manager's agents are immutable.
type Agent struct {
	// Name is the name that clients use in session.start; empty means "default".
	Name string
	// Version is the version of the agent's document, All that of all agents' documents at the lookup. Both are empty
	// for a configured agent.
	Version, All string
	// Instructions is the system text, or the input of Options.Instructions.
	Instructions string
	// Greeting is the model's instruction for opening a session. If it is empty, the user speaks first.
	Greeting string
	// Voices is the voice for each provider, by its name; without an entry, the provider chooses.
	Voices map[string]string
	// Language is a BCP 47 tag; if it is empty, the model chooses.
	Language string
	// Provider and Model select the agent's model. An empty Provider is Options.Provider, an empty Model the
	// provider's default.
	Provider, Model string
	// Tools are the ids of the allowed tools; nil means all.
	Tools []string
	// SwitchTo are the agents to which this one may transfer its user.
	SwitchTo []registry.SwitchTarget
	// Budget limits a turn's tool calls. A zero field is that of Options.Policy.
	Budget calls.Budget
}

// Agents are the available agents. The methods may be called concurrently.
type Agents interface {
	// Agent returns the current agent of that name; nil if no session may begin with it. It does not wait.
	Agent(name string) *Agent
	// Pinned returns the agent of a continued session: in that version if it exists, otherwise the current one; nil if
	// the name is unknown.
	Pinned(ctx context.Context, name, version string) *Agent
	// Names lists the available agents, sorted.
	Names() []string
}

// model returns the agent's model for a provider; empty for the provider's default.
func (a *Agent) model(provider string) string {
	if provider == a.Provider {
		return a.Model
	}
	return ""
}

func (a *Agent) policy(p orchestrator.Policy) orchestrator.Policy {
	p.Tools.Budget = a.Budget.Or(p.Tools.Budget)
	return p
}

// rulesOf returns the rules of an agent's sessions. Agents without a budget share them.
func (o *Options) rulesOf(a *Agent) *orchestrator.Rules {
	if a.Budget == (calls.Budget{}) {
		return o.rules
	}
	return orchestrator.NewRules(a.policy(o.Policy))
}

// agent returns the current agent of that name, the default for an empty name; nil if no session may begin with it.
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

// pinned returns the agent of a session that another process has run; the default agent if it is unknown.
func (o *Options) pinned(ctx context.Context, name, version string, logger *slog.Logger) *Agent {
	if version == "" && name == o.Agent.Name {
		return &o.Agent // the configured one, whatever was edited since
	}
	var a *Agent
	if o.Agents != nil {
		a = o.Agents.Pinned(ctx, name, version)
	}
	if a == nil {
		a = o.agent("")
	}
	if a.Name != name || a.Version != version {
		logger.Warn("a taken session's agent is unknown in its version", "agent", name, "agent_version", version,
			"goes_on_with", a.Name, "its_version", a.Version)
	}
	return a
}

// Agents lists the available agents, the default one first.
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

// Agent returns the name of the default agent.
func (m *Manager) Agent() string { return m.options().Agent.Name }

// HasAgent reports whether a session may begin with that agent; an empty name means the default.
func (m *Manager) HasAgent(name string) bool { return m.options().agent(name) != nil }

func (o *Options) checkAgent(start *startMessage) *Cause {
	if o.agent(start.Agent) == nil {
		return o.noAgent(start.Agent)
	}
	return nil
}

// maxNamed is how many agents a refusal names.
const maxNamed = 10

func (o *Options) noAgent(name string) *Cause {
	names := o.agentNames()
	there := `"` + strings.Join(names[:min(len(names), maxNamed)], `", "`) + `"`
	if len(names) > maxNamed {
		there += " and more"
	}
	return refusal(protocol.CloseUnknownTarget, protocol.CodeUnknownAgent, "There is no agent %q here; there is %s.", clip(name), there)
}

func (g *startup) choose() *Cause {
	m := g.m
	a := m.options().agent(g.start.Agent)
	switch {
	case a == nil:
		return m.options().noAgent(g.start.Agent)
	case a.Provider != "" && g.start.Provider != "" && g.start.Provider != a.Provider:
		return refusal(protocol.CloseUnknownTarget, protocol.CodeUnknownProvider,
			"The agent %q speaks with the provider %q alone; leave provider out.", a.Name, a.Provider)
	}
	g.agent = a
	return nil
}

// drawKey is the key for drawing tool versions: the user, or the conversation of an anonymous user, which may have
// begun in text.
func drawKey(who user.User, conversation, session string) string {
	if who.Anonymous() {
		return cmp.Or(conversation, session)
	}
	return who.String()
}

// toolsFor returns the tools of a snapshot (may be nil) that the agent may use in session s, with the tool that
// switches to its available agents.
func (o *Options) toolsFor(a *Agent, tools *registry.Snapshot, s registry.Session) *registry.Snapshot {
	s.Agent, s.Mode, s.Now = a.Name, spec.ModeVoice, time.Now().UTC()
	there := slices.DeleteFunc(slices.Clone(a.SwitchTo), func(t registry.SwitchTarget) bool {
		return t.ID == a.Name ||
			o.agent(t.ID) == nil
	})
	return tools.For(registry.Selection{Session: s, Only: a.Tools, Live: o.Live, SwitchTo: there})
}

func (o *Options) providerOf(w *modelRequest) string {
	provider := cmp.Or(w.start.Provider, w.agent.Provider, o.Provider)
	if o.Transports[provider] == nil {
		return o.Provider // not configured on this node
	}
	return provider
}

// toolsVersion returns the registry version of the session's tools; empty without tools.
func (s *session) toolsVersion() string {
	tools := s.tools.Load()
	if tools == nil {
		return ""
	}
	return tools.ToolsVersion()
}
