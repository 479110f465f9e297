package session

import (
	"log/slog"
	"time"

	"voicegw/audit"
	"voicegw/config/defaults"
	"voicegw/internal/mark"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/transport"
)

// Options is what a Manager needs. Transports and Provider must be set; the zero
// value of everything else is useful.
type Options struct {
	// Transports are the providers that a client may ask for, by name.
	Transports map[string]transport.Transport
	// Provider is the one for clients that do not ask.
	Provider string
	// Agent is how the model is to behave.
	Agent Agent
	// Tools returns the registry's snapshot that a new session is to hold. Nil means
	// that there are no tools.
	Tools func() *registry.Snapshot
	// Instructions makes a session's system text from the tools it has and from the mark
	// that the gateway's own messages to its model begin with, which the text must name.
	// Nil means Agent.Instructions.
	Instructions func(tools *registry.Snapshot, own mark.Mark) string
	// Blocked says until when a user is shut out; ok is false for one who is not. It
	// is asked once, at session.start, and may be called by several goroutines. Nil
	// means that nobody is.
	Blocked func(who user.User) (until time.Time, ok bool)
	// Desk hands conversations over. Nil means that there are no tickets, that clients may
	// name any conversation, and that nothing is handed back.
	Desk Desk
	// TicketRequired lets nobody in without a ticket.
	TicketRequired bool
	// Executor runs the tools. Drain closes it. Nil: one without a ledger, which lets
	// nothing run that writes.
	Executor *execute.Executor
	// Audit takes the records of what tools did. It is called with a lock held and must
	// not block. Nil discards.
	Audit func(audit.Record)
	// Policy holds the limits and patience of a session, and the rules for its tools.
	Policy orchestrator.Policy
	// Limits bound what clients may do.
	Limits Limits
	// SilenceMS and PrefixMS tune speech detection, in ms; zero leaves the default
	// of the provider, or of the gateway's own detector.
	SilenceMS, PrefixMS int
	// Logger gets one line for each event of a session's life. Nil discards.
	Logger *slog.Logger

	// now is the time by which a client's audio comes too fast; nil for the real one.
	now func() time.Time
}

// Agent is the character that the model plays.
type Agent struct {
	// Name is what clients ask for in session.start; empty means "default".
	Name string
	// Instructions is the model's system text.
	Instructions string
	// Greeting tells the model how to open a session; empty: the user speaks first.
	Greeting string
	// Voices is the voice for each provider's name; absent means the provider's own.
	Voices map[string]string
	// Language is a BCP 47 tag; empty lets the model decide.
	Language string
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
	// Waiting is how many connections may wait for their session.start, WaitingPerAddress
	// how many of them from one address. They take none of the places of Sessions and
	// PerAddress. Zero means defaults.WaitingSessions and
	// defaults.WaitingPerAddress.
	Waiting, WaitingPerAddress int
	// ExemptLoopback exempts this machine's own addresses from what limits one address.
	ExemptLoopback bool
	// AudioAhead is how far a client's audio may run ahead of real time.
	// Zero means defaults.AudioAhead.
	AudioAhead time.Duration
	// StartTimeout is how long a client may take to send session.start.
	// Default 10 s.
	StartTimeout time.Duration
	// ConnectTimeout bounds all tries to reach the provider. Default 10 s.
	ConnectTimeout time.Duration
	// SlowClient is how long one write to a client may make no progress.
	// Zero means defaults.SlowClient.
	SlowClient time.Duration
	// Backlog is how much audio may wait for a slow client. Default 120 s.
	Backlog time.Duration
	// BacklogBytes is how many bytes of memory may be taken by what waits for a slow
	// client, audio and messages together. Default 24 MiB: the default of Backlog at any
	// rate, and a few MiB of messages.
	BacklogBytes int
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.Sessions, defaults.Sessions}, {&l.PerAddress, defaults.SessionsPerAddress}, {&l.NewPerSecond, defaults.NewSessionsPerSecond},
		{&l.Waiting, defaults.WaitingSessions}, {&l.WaitingPerAddress, defaults.WaitingPerAddress}, {&l.BacklogBytes, 24 << 20},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&l.AudioAhead, defaults.AudioAhead}, {&l.StartTimeout, 10 * time.Second},
		{&l.ConnectTimeout, 10 * time.Second}, {&l.SlowClient, defaults.SlowClient},
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
	if o.Agent.Name == "" {
		o.Agent.Name = defaults.AgentName
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Executor == nil {
		o.Executor = execute.New(execute.Options{Logger: o.Logger})
	}
	return o
}
