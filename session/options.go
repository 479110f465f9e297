package session

import (
	"log/slog"
	"sync/atomic"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
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
	// Transports are the providers that a client may ask for, by name.
	Transports map[string]transport.Transport
	// Provider is the provider for clients that do not ask for one.
	Provider string
	// Fallback is the provider that takes a running session over if its own cannot be reached, and
	// a new one whose client has not asked for a provider. Empty means that no other provider takes over.
	Fallback string
	// Agent is the agent for clients that do not ask for one.
	Agent Agent
	// Agents are the others. Nil means that the configured agent is the only one.
	Agents Agents
	// Tools returns the registry's current snapshot, which a new session holds. Nil means that
	// there are no tools.
	Tools func() *registry.Snapshot
	// Live returns the live values with which a session's tools are filled; see registry.Snapshot.Fill. It
	// may be nil, is called concurrently, and must not wait.
	Live registry.LiveValues
	// Instructions makes a session's system text from its agent, its tools, its mark and the IANA name of
	// the user's time zone, which is empty if it is not known. The text must
	// explain the mark to the model: it stands before the gateway's own messages. Nil means
	// the agent's Instructions alone.
	Instructions func(a *Agent, tools *registry.Snapshot, own prompts.Mark, timeZone string) string
	// Blocked returns until when a user is locked out; ok is false if the user is not. It is
	// called once for each session.start, and may be called concurrently. Nil means that nobody
	// is locked out.
	Blocked func(who user.User) (until time.Time, ok bool)
	// Desk hands conversations over. Nil means that there are no tickets, that clients may name
	// any conversation, and that nothing is handed back.
	Handoffs Handoffs
	// Credentials says what has become of credentials that have let a client in; *auth.Current
	// implements it. Nil means that they go on for ever.
	Credentials Credentials
	// TicketRequired refuses clients without a ticket.
	TicketRequired bool
	// Cluster is the other nodes. Nil means that this node is alone.
	Cluster Cluster
	// Executor runs the tools. Drain closes it. Nil means an executor without a ledger, which
	// refuses tools that write.
	Executor *execute.Executor
	// Audit receives the records of tool calls. It is called with a lock held and must not block.
	// Nil discards them.
	Audit func(audit.Record)
	// Prices are what tokens cost. Nil knows no price: everything is unpriced.
	Prices *cost.Table
	// Usage counts what users and keys use, and refuses those that have used what they may. Nil
	// counts nothing.
	Usage *meter.Meter
	// Policy holds the limits and waiting times of a session, and the rules for its tools.
	Policy orchestrator.Policy
	// Limits bound what clients may do.
	Limits Limits
	// SilenceMS and PrefixMS tune speech detection, in ms. Zero means the default of the provider,
	// or of the gateway's own detector.
	SilenceMS, PrefixMS int
	// Logger gets one line for each event of a session's life. Nil means no logging.
	Logger *slog.Logger
	// Observe is for whoever counts what happens. Nil means nobody.
	Observe Observe
	// Follow is for whoever follows single sessions. Nil means nobody.
	Follow Follow

	// Lifecycle is told when a session has begun, and when it is over. It may be called concurrently, and
	// must not block. Nil means nobody.
	Lifecycle func(Lifecycle)

	// now is the clock that checks whether a client's audio comes too fast; nil means time.Now.
	now func() time.Time
	// budget limits the memory of all sessions for clients that may return; NewManager makes it.
	budget *downlink.Budget
	// rules are those of Policy; withDefaults makes them.
	rules *orchestrator.Rules
	// looked counts what all sessions keep of what users say, in bytes; NewManager makes it.
	looked *atomic.Int64
}

// Limits bound what clients may do. A zero field means its default.
type Limits struct {
	// Sessions is how many may run at once. Zero means defaults.Sessions.
	Sessions int
	// PerAddress is how many of them may come from one address. Zero means
	// defaults.SessionsPerAddress.
	PerAddress int
	// NewPerSecond is how many may connect within a second from one address.
	// Zero means defaults.NewSessionsPerSecond.
	NewPerSecond int
	// Waiting is how many connections may wait for their session.start, WaitingPerAddress how many
	// of them from one address. They do not count against Sessions and PerAddress. Zero means
	// defaults.WaitingSessions and defaults.WaitingPerAddress.
	Waiting, WaitingPerAddress int
	// ExemptLoopback exempts this machine's own addresses from the limits per address.
	ExemptLoopback bool
	// ClientTools is how many tools a client may declare. Zero means defaults.ClientTools, a negative number
	// none.
	ClientTools int
	// AudioAhead is how far a client's audio may run ahead of real time.
	// Zero means defaults.AudioAhead.
	AudioAhead time.Duration
	// StartTimeout is how long a client may take to send session.start.
	// Default 10 s.
	StartTimeout time.Duration
	// ConnectTimeout bounds all attempts to reach the provider together. Default 10 s.
	ConnectTimeout time.Duration
	// SlowClient is how long a write to a client may make no progress. Zero means
	// defaults.SlowClient.
	SlowClient time.Duration
	// Backlog is how much audio may be queued for a slow client. Default 120 s.
	Backlog time.Duration
	// BacklogBytes is how much memory the queue for a slow client may take, in bytes, audio and
	// messages together. Default 24 MiB: enough for the default Backlog at any sample rate, and a
	// few MiB of messages.
	BacklogBytes int
	// Held is how many messages are kept that a client may not have received, so that it gets them
	// when it comes back. Default 1,024, which is also the most of which clients tell repeats apart.
	Held int
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.Sessions, setting.Sessions}, {&l.PerAddress, setting.SessionsPerAddress}, {&l.NewPerSecond, setting.NewSessionsPerSecond},
		{&l.Waiting, setting.WaitingSessions}, {&l.WaitingPerAddress, setting.WaitingPerAddress}, {&l.BacklogBytes, 24 << 20}, {&l.Held, downlink.MaxKept}, {&l.ClientTools, setting.ClientTools},
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
