package session

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/session/downlink"
	"voicegw/transport"
)

// Options configure a Manager. Transports and Provider are required; the zero value of every other field is usable.
type Options struct {
	// Transports are the available providers, by name.
	Transports map[string]transport.Transport
	// Provider is the default provider.
	Provider string
	// Fallback takes over if a provider cannot be reached, unless a new session's client has requested one. May be empty.
	Fallback string
	// Agent is the default agent.
	Agent Agent
	// Agents are the other agents; nil without others.
	Agents Agents
	// Tools returns the registry's current snapshot, which a new session holds. Nil means no tools.
	Tools func() *registry.Snapshot
	// Live returns the live values for tools; see registry.Snapshot.Fill. It may be nil and must not wait.
	Live registry.LiveValues
	// Instructions makes a session's system text from its agent, tools, mark and the user's IANA time zone (may be
	// empty). The text must explain the mark. Nil means the agent's Instructions alone.
	Instructions func(a *Agent, tools *registry.Snapshot, own prompts.Mark, timeZone string) string
	// Blocked returns until when a user is locked out; ok is false for others. It may be nil.
	Blocked func(who user.User) (until time.Time, ok bool)
	// Handoffs connects sessions with stored conversations. Nil: no tickets, no handback, free names of conversations.
	Handoffs Handoffs
	// Credentials checks whether admitted credentials are still valid. Nil means that they never expire.
	Credentials Credentials
	// Cluster is the other nodes. Nil means none.
	Cluster Cluster
	// Executor runs the tools. Drain closes it. Nil means one without a ledger, which refuses tools that write.
	Executor *execute.Executor
	// Audit receives audit records. It is called with a lock held and must not block. Nil discards them.
	Audit func(audit.Record)
	// Speech gives the audio of exact sentences. Nil: the model reads them, or Policy.RefuseUnsaid applies.
	Speech Speech
	// Prices are the token prices. Nil leaves everything unpriced.
	Prices *cost.Table
	// Usage counts the usage of users and keys, and enforces their limits. Nil counts nothing.
	Usage *meter.Meter
	// Checks check the assistant's words before the user hears them; nil checks nothing.
	Checks *checks.Set
	// Policy has a session's limits and timeouts, and the rules for its tools.
	Policy orchestrator.Policy
	// Limits bound what clients may do.
	Limits Limits
	// SilenceMS and PrefixMS tune speech detection, in ms. Zero means the provider's or the detector's default.
	SilenceMS, PrefixMS int
	// JoinSilence sends the user's silence to models with an AudioClock in longer frames.
	JoinSilence bool
	// Logger gets the events of sessions. Nil means no logging.
	Logger *slog.Logger
	// Observe receives events for metrics. Nil discards them.
	Observe Observe
	// Follow receives the steps of single sessions. Nil discards them.
	Follow Follow

	// Lifecycle is called at the begin and the end of a session, maybe concurrently. It may be nil and must not block.
	Lifecycle Lifecycle

	// now is the clock for the limit of audio ahead; nil means time.Now.
	now func() time.Time
	// budget limits the memory kept for absent clients; NewManager sets it.
	budget *downlink.Budget
	// rules are Policy's; withDefaults sets them.
	rules *orchestrator.Rules
	// looked counts the bytes in all lookbacks; NewManager sets it.
	looked *atomic.Int64
}

// Limits bound what clients may do. A zero field means its default.
type Limits struct {
	// Sessions is the limit of concurrent sessions. Zero means setting.Sessions.
	Sessions int
	// PerAddress is the limit for one address. Zero means setting.SessionsPerAddress.
	PerAddress int
	// NewPerSecond limits new connections from one address within a second. Zero means setting.NewSessionsPerSecond.
	NewPerSecond int
	// Waiting limits connections without session.start, WaitingPerAddress those of an address. They count for no other limit.
	Waiting, WaitingPerAddress int
	// ExemptLoopback exempts loopback addresses from the limits per address.
	ExemptLoopback bool
	// ClientTools limits the tools that a client may declare. Zero means setting.ClientTools, a negative number none.
	ClientTools int
	// AudioAhead is how far a client's audio may be ahead of real time. Zero means setting.AudioAhead.
	AudioAhead time.Duration
	// StartTimeout bounds the wait for session.start. Default 10 s.
	StartTimeout time.Duration
	// ConnectTimeout bounds all attempts to reach the provider together. Default 10 s.
	ConnectTimeout time.Duration
	// SlowClient is how long a write to a client may make no progress. Zero means setting.SlowClient.
	SlowClient time.Duration
	// Backlog bounds the audio queued for a slow client. Default 120 s.
	Backlog time.Duration
	// BacklogBytes bounds the memory of a slow client's queue. Default 24 MiB: the default Backlog, and messages.
	BacklogBytes int
	// Held bounds the unconfirmed messages kept for a returning client. Default 1,024, as clients detect repeats.
	Held int
}

func (l Limits) withDefaults() Limits {
	l.Sessions = cmp.Or(l.Sessions, setting.Sessions)
	l.PerAddress = cmp.Or(l.PerAddress, setting.SessionsPerAddress)
	l.NewPerSecond = cmp.Or(l.NewPerSecond, setting.NewSessionsPerSecond)
	l.Waiting = cmp.Or(l.Waiting, setting.WaitingSessions)
	l.WaitingPerAddress = cmp.Or(l.WaitingPerAddress, setting.WaitingPerAddress)
	l.ClientTools = cmp.Or(l.ClientTools, setting.ClientTools)
	l.AudioAhead = cmp.Or(l.AudioAhead, setting.AudioAhead)
	l.StartTimeout = cmp.Or(l.StartTimeout, 10*time.Second)
	l.ConnectTimeout = cmp.Or(l.ConnectTimeout, 10*time.Second)
	l.SlowClient = cmp.Or(l.SlowClient, setting.SlowClient)
	l.Backlog = cmp.Or(l.Backlog, 120*time.Second)
	l.BacklogBytes = cmp.Or(l.BacklogBytes, 24<<20)
	l.Held = cmp.Or(l.Held, downlink.MaxKept)
	return l
}

func (o Options) withDefaults() Options {
	if o.now == nil {
		o.now = time.Now
	}
	o.Limits = o.Limits.withDefaults()
	o.Policy.Relink, o.Policy.Failover = true, o.Fallback != ""
	o.Policy.HoldsBack = o.Checks != nil && o.Checks.HoldBack > 0
	o.rules = orchestrator.NewRules(o.Policy)
	o.Agent.Name = cmp.Or(o.Agent.Name, setting.AgentName)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Observe == nil {
		o.Observe = func(string, string) func(Event) { return func(Event) {} }
	}
	if o.Executor == nil {
		o.Executor = execute.New(execute.Options{Logger: o.Logger})
	}
	return o
}

// CanReconfigure returns why Reconfigure would refuse these options: the names of Transports must not change.
func (m *Manager) CanReconfigure(o Options) error {
	had, has := slices.Sorted(maps.Keys(m.options().Transports)), slices.Sorted(maps.Keys(o.Transports))
	if !slices.Equal(had, has) {
		return fmt.Errorf("session: the providers are %q, and cannot become %q while sessions may run", had, has)
	}
	return nil
}

// Reconfigure applies the Transports, Policy, Limits and Prices of o, unless CanReconfigure refuses them. Running
// sessions keep the last three, and use the new Transports for their next connection. Sessions beyond lower limits
// continue.
func (m *Manager) Reconfigure(o Options) error {
	if err := m.CanReconfigure(o); err != nil {
		return err
	}
	next := *m.options()
	next.Transports, next.Policy, next.Limits, next.Prices = o.Transports, o.Policy, o.Limits, o.Prices
	next = next.withDefaults()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places.Limit(quota.Options{AtOnce: next.Limits.PerAddress, PerSecond: next.Limits.NewPerSecond})
	m.waiting.Limit(next.Limits.Waiting, next.Limits.WaitingPerAddress)
	m.now.Store(&next)
	return nil
}

// blocked returns the cause for a locked-out user; nil for others.
func (o *Options) blocked(who user.User) *Cause {
	if o.Blocked != nil {
		if until, ok := o.Blocked(who); ok {
			return blocked(until)
		}
	}
	return nil
}

// options returns the current options. They are immutable; the next call may return others.
func (m *Manager) options() *Options { return m.now.Load() }

// Agent is the character that the model plays. A Manager's agents are immutable.
type Agent struct {
	// Name is the name that clients use in session.start; empty means "default".
	Name string
	// Version is that of the agent's document, All that of all documents. Both are empty for a configured agent.
	Version, All string
	// Instructions is the system text, or the input of Options.Instructions.
	Instructions string
	// Greeting is the model's instruction for opening a session. If it is empty, the user speaks first.
	Greeting string
	// Notice is said exactly at the beginning of a session, before all else; may be empty.
	Notice string
	// Voices is the voice for each provider, by its name; without an entry, the provider chooses.
	Voices map[string]string
	// Language is a BCP 47 tag; if it is empty, the model chooses.
	Language string
	// Provider and Model select the model; empty means Options.Provider and the provider's default.
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
	// Pinned returns a continued session's agent, in that version if it exists; nil if the name is unknown.
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

// rulesOf returns the rules of an agent's sessions. Agents without a budget share them, unless the client has a keypad.
func (o *Options) rulesOf(a *Agent, x *protocol.StartExtra) *orchestrator.Rules {
	keypad := x != nil && x.Keypad
	if a.Budget == (calls.Budget{}) && !keypad {
		return o.rules
	}
	p := o.Policy
	p.Tools.Budget, p.Keypad = a.Budget.Or(p.Tools.Budget), keypad
	return orchestrator.NewRules(p)
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

const maxNamed = 10

func (o *Options) noAgent(name string) *Cause {
	names := o.agentNames()
	there := `"` + strings.Join(names[:min(len(names), maxNamed)], `", "`) + `"`
	if len(names) > maxNamed {
		there += " and more"
	}
	return refusal(protocol.CloseUnknownTarget, protocol.CodeUnknownAgent, "There is no agent %q here; available: %s.", clip(name), there)
}

func (g *startup) choose() *Cause {
	a := g.options().agent(g.start.Agent)
	switch {
	case a == nil:
		return g.options().noAgent(g.start.Agent)
	case a.Provider != "" && g.start.Provider != "" && g.start.Provider != a.Provider:
		return refusal(protocol.CloseUnknownTarget, protocol.CodeUnknownProvider,
			"The agent %q uses only the provider %q; omit provider.", a.Name, a.Provider)
	}
	g.agent = a.adapted(g.start)
	return nil
}

// Anonymous users draw by their conversation, which may have begun in text.
func drawKey(who user.User, conversation, session string) string {
	if who.Anonymous() {
		return cmp.Or(conversation, session)
	}
	return who.String()
}

// toolsFor returns the tools that the agent may use in session s, with the tool that switches to available agents.
func (o *Options) toolsFor(a *Agent, tools *registry.Snapshot, s registry.Session) *registry.Snapshot {
	s.Agent, s.Mode, s.Now = a.Name, spec.ModeVoice, time.Now().UTC()
	there := slices.DeleteFunc(slices.Clone(a.SwitchTo), func(t registry.SwitchTarget) bool {
		return t.ID == a.Name || o.agent(t.ID) == nil
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

func (s *session) toolsVersion() string {
	tools := s.tools.Load()
	if tools == nil {
		return ""
	}
	return tools.ToolsVersion()
}
