package session

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/session/downlink"
	"voicegw/transport"
)

// Options configure a Manager. Transports and Provider are required; the zero value of every other
// field is usable.
type Options struct {
	// Transports are the available providers, by name.
	Transports map[string]transport.Transport
	// Provider is the default provider.
	Provider string
	// Fallback is the provider that takes over a running session if its own cannot be reached, and a new one whose
	// client has not requested a provider. Empty means none.
	Fallback string
	// Agent is the default agent.
	Agent Agent
	// Agents are the others. Nil means that there are none.
	Agents Agents
	// Tools returns the registry's current snapshot, which a new session holds. Nil means no tools.
	Tools func() *registry.Snapshot
	// Live returns the live values for a session's tools; see registry.Snapshot.Fill. It may be nil, is called
	// concurrently, and must not wait.
	Live registry.LiveValues
	// Instructions makes a session's system text from its agent, tools, mark and the user's IANA time zone, which may
	// be empty. The text must explain to the model that the mark precedes the gateway's own messages. Nil means the
	// agent's Instructions alone.
	Instructions func(a *Agent, tools *registry.Snapshot, own prompts.Mark, timeZone string) string
	// Blocked returns until when a user is locked out; ok is false for other users. It is called for each
	// session.start, maybe concurrently. Nil blocks no user.
	Blocked func(who user.User) (until time.Time, ok bool)
	// Handoffs connects sessions with stored conversations. Nil means no tickets, no handback, and free names of
	// conversations.
	Handoffs Handoffs
	// Credentials checks whether admitted credentials are still valid; *auth.Current implements it. Nil means that
	// they never expire.
	Credentials Credentials
	// Cluster is the other nodes. Nil means none.
	Cluster Cluster
	// Executor runs the tools. Drain closes it. Nil means one without a ledger, which refuses tools that write.
	Executor *execute.Executor
	// Audit receives audit records. It is called with a lock held and must not block. Nil discards them.
	Audit func(audit.Record)
	// Prices are the token prices. Nil leaves everything unpriced.
	Prices *cost.Table
	// Usage counts the usage of users and keys, and enforces their limits. Nil counts nothing.
	Usage *meter.Meter
	// Policy has a session's limits and timeouts, and the rules for its tools.
	Policy orchestrator.Policy
	// Limits bound what clients may do.
	Limits Limits
	// SilenceMS and PrefixMS tune speech detection, in ms. Zero means the provider's or the detector's default.
	SilenceMS, PrefixMS int
	// Logger gets the events of sessions. Nil means no logging.
	Logger *slog.Logger
	// Observe receives events for metrics. Nil discards them.
	Observe Observe
	// Follow receives the steps of single sessions. Nil discards them.
	Follow Follow

	// Lifecycle is called when a session begins and when it is over. It may be called concurrently and must not block.
	// May be nil.
	Lifecycle func(Lifecycle)

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
	// Waiting limits the connections that have not sent session.start, WaitingPerAddress those from one address. They
	// do not count for Sessions and PerAddress. Zero means setting.WaitingSessions and setting.WaitingPerAddress.
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
	// BacklogBytes bounds the memory of a slow client's queue, in bytes. Default 24 MiB: the default Backlog at any
	// sample rate, and a few MiB of messages.
	BacklogBytes int
	// Held is how many unconfirmed messages are kept for a returning client. Default 1,024, the most among which
	// clients detect repeats.
	Held int
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.Sessions, setting.Sessions}, {&l.PerAddress, setting.SessionsPerAddress}, {&l.NewPerSecond, setting.NewSessionsPerSecond},
		{&l.Waiting, setting.WaitingSessions}, {&l.WaitingPerAddress, setting.WaitingPerAddress}, {&l.BacklogBytes,
			24 << 20}, {&l.Held, downlink.MaxKept}, {&l.ClientTools, setting.ClientTools},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&l.AudioAhead, setting.AudioAhead}, {&l.StartTimeout, 10 * time.Second},
		{&l.ConnectTimeout, 10 * time.Second}, {&l.SlowClient, setting.SlowClient},
		{&l.Backlog, 120 * time.Second},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return l
}

func (o Options) withDefaults() Options {
	if o.now == nil {
		o.now = time.Now
	}
	o.Limits = o.Limits.withDefaults()
	o.Policy.Relink, o.Policy.Failover = true, o.Fallback != ""
	o.rules = orchestrator.NewRules(o.Policy)
	if o.Agent.Name == "" {
		o.Agent.Name = setting.AgentName
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = noObserver
	}
	if o.Executor == nil {
		o.Executor = execute.New(execute.Options{Logger: o.Logger})
	}
	return o
}

// Settings are the options that may change while sessions run; see [Options].
type Settings struct {
	Transports map[string]transport.Transport
	Policy     orchestrator.Policy
	Limits     Limits
	Prices     *cost.Table
}

// CanReconfigure returns why Reconfigure would refuse these settings: the names of Transports must not change.
func (m *Manager) CanReconfigure(s Settings) error {
	had, has := slices.Sorted(maps.Keys(m.options().Transports)), slices.Sorted(maps.Keys(s.Transports))
	if !slices.Equal(had, has) {
		return fmt.Errorf("session: the providers are %q, and cannot become %q while sessions may run", had, has)
	}
	return nil
}

// Reconfigure applies other settings, unless CanReconfigure refuses them. Running sessions keep their Policy, Limits
// and Prices, and use the new Transports for their next connection. Sessions beyond lower limits continue.
func (m *Manager) Reconfigure(s Settings) error {
	if err := m.CanReconfigure(s); err != nil {
		return err
	}
	next := *m.options()
	next.Transports, next.Policy, next.Limits, next.Prices = s.Transports, s.Policy, s.Limits, s.Prices
	next = next.withDefaults()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places.Limit(quota.Options{AtOnce: next.Limits.PerAddress, PerSecond: next.Limits.NewPerSecond})
	m.waiting.Limit(next.Limits.Waiting, next.Limits.WaitingPerAddress)
	m.now.Store(&next)
	return nil
}

// options returns the current options. They are immutable; the next call may return others.
func (m *Manager) options() *Options { return m.now.Load() }
