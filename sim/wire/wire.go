package wire

import (
	"context"
	"log/slog"
	"sync/atomic"

	"voicegw/sim/fault"
	"voicegw/sim/scenario"
)

// Options are the same for both wires. Zero values are useful.
type Options struct {
	// Scenario is what the model says. Nil means scenario.Default().
	Scenario *scenario.Scenario
	// Faults are committed on every connection. Nil means none.
	Faults *fault.Script
	// Seed makes ids, faults and choices repeatable: connection n of a server
	// uses Seed and n. Zero is a seed like any other.
	Seed uint64
	// Speed, ChunkMS and FirstAudioMS are those of pace.Options; zero means the
	// wire's own default.
	Speed        float64
	ChunkMS      int
	FirstAudioMS int
	// Logger receives one line for each connection's begin and end. Nil logs nothing.
	Logger *slog.Logger
	// Stats is counted up. Nil counts nowhere.
	Stats *Stats
	// Group holds the open connections, so that they can be ended and waited
	// for. Nil means a group of the wire's own, which nobody can end.
	Group *Group
}

// Begin is what a new connection is given.
type Begin struct {
	// N counts the connections of the server, both wires, from 1.
	N int
	// Seed is this connection's own: for IDs, the dialogue and choices.
	Seed uint64
	// Faults are this connection's; never nil.
	Faults *fault.Injector
}

// Begin counts a connection and draws what is its own. Any goroutine may call
// it; Group must be set (WithDefaults does).
func (o *Options) Begin() Begin {
	return Begin{N: 1, Seed: o.Seed, Faults: o.Faults.NewInjector(o.Seed, 1)}
}

// WithDefaults fills in what is nil: scenario, logger, stats and group. A wire
// calls it in New.
func (o Options) WithDefaults() Options { return o }

// Stats counts what happened, for tests and for a report at the end. All of it
// may be read at any time.
type Stats struct {
	Connections atomic.Int64 // accepted, both wires
	Refused     atomic.Int64 // answered with an HTTP error or closed for a key or a model
	Open        atomic.Int64
	FramesIn    atomic.Int64
	FramesOut   atomic.Int64
	AudioInMS   atomic.Int64
	AudioOutMS  atomic.Int64
	Utterances  atomic.Int64
	Responses   atomic.Int64
	Interrupted atomic.Int64
	Calls       atomic.Int64
	Results     atomic.Int64
	Errors      atomic.Int64 // error events sent, or closes for a client's mistake
	Faults      atomic.Int64 // committed
	Tokens      atomic.Int64 // ephemeral credentials made
}

// Key says what a provider does with a key.
type Key int

// The fates of a key. Any key is KeyOK but the empty one and those that begin
// with "invalid", "expired" or "quota" (after "sk-", "ek_" or "auth_tokens/", in any case).
const (
	KeyOK Key = iota
	KeyMissing
	KeyInvalid
	KeyExpired
	KeyQuota
)

// ClassifyKey tells the fate of a key.
func ClassifyKey(key string) Key { return KeyOK }

// IDs makes ids that are the same on every run with the same seed. One
// goroutine at a time may use it.
type IDs struct{}

// NewIDs makes a source of ids.
func NewIDs(seed uint64) *IDs { return &IDs{} }

// Base62 is n letters and digits.
func (i *IDs) Base62(n int) string { return "" }

// Digits is n decimal digits, the first not 0.
func (i *IDs) Digits(n int) string { return "" }

// UUID is a random (version 4) UUID.
func (i *IDs) UUID() string { return "" }

// TextTokens estimates the tokens of a text by its words: 4 tokens for 3
// words, at least 1 for a text that is not empty.
func TextTokens(text string) int { return 0 }

// Group is the set of open connections of a server.
type Group struct{}

// Enter registers a connection. end is called, once and from another
// goroutine, when the group closes. It returns the function to call when the
// connection is over, and false when the group is closed already.
func (g *Group) Enter(end func()) (leave func(), ok bool) { return func() {}, true }

// Close ends all connections and waits until all have left, or ctx is done.
func (g *Group) Close(ctx context.Context) error { return nil }
