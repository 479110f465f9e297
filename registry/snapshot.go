package registry

import (
	"context"
	"encoding/json"
	"time"
)

// Tool is one tool of a [Snapshot]; immutable.
type Tool struct {
	Entry
}

// Snapshot is the tools of one version; immutable, and safe for concurrent use.
type Snapshot struct {
	version string
}

// Version is the version of the registry file.
func (s *Snapshot) Version() string { return s.version }

// Tools are the tools allowed in mode, sorted by id. The caller owns the slice.
func (s *Snapshot) Tools(mode Mode) []*Tool { return nil }

// All are the tools of all modes, sorted by id. The caller owns the slice.
func (s *Snapshot) All() []*Tool { return nil }

// Tool is the tool of that id, whatever its modes.
func (s *Snapshot) Tool(id string) (*Tool, bool) { return nil, false }

// Prepare takes a call as the model sent it to the point where only policy and
// execution are left: it finds the tool, checks the mode, decodes raw strictly
// (empty is {}), applies defaults at every depth and validates. Otherwise the
// Envelope is the answer: NOT_FOUND, MODE_RESTRICTED, or VALIDATION with every
// error and its path.
func (s *Snapshot) Prepare(id string, mode Mode, raw json.RawMessage) (*Prepared, *Envelope) {
	env := NotFound(id, s.version, time.Duration(0))
	return nil, &env
}

// Prepared is a call that is ready to run. Its methods may not be called
// concurrently with Clamp and SetIdempotencyKey.
type Prepared struct {
	tool *Tool
}

// Tool is the tool to be called.
func (p *Prepared) Tool() *Tool { return p.tool }

// Mode is the mode it was prepared for.
func (p *Prepared) Mode() Mode { return "" }

// Args are the arguments, defaults applied, in canonical JSON (see [Canonical]).
func (p *Prepared) Args() json.RawMessage { return nil }

// Defaults are JSON pointers to the arguments that the model left out and a
// default filled in, sorted.
func (p *Prepared) Defaults() []string { return nil }

// Clamp lowers top-level numbers that are above the tool's own limits of the mode
// or above limits, the lower of both, and says which. It may be called again.
func (p *Prepared) Clamp(limits map[string]int) map[string]Clamped { return nil }

// BusinessKey is the tool's idempotencyKey template over the arguments; empty if it has none.
func (p *Prepared) BusinessKey() string { return "" }

// Preview is the tool's preview template over the arguments, or the tool's name and
// its arguments as JSON if it has none.
func (p *Prepared) Preview() string { return "" }

// SetIdempotencyKey sets what the handler sees as Call.IdempotencyKey, by default BusinessKey.
func (p *Prepared) SetIdempotencyKey(key string) {}

// Run executes a prepared call and always returns an envelope, within the tool's
// TimeoutMS. session.Mode is the mode it was prepared for. caps are the values of
// Options.SessionCapabilities and of the mode's. Cancelling ctx cancels the call. Several calls may run concurrently.
func (s *Snapshot) Run(ctx context.Context, p *Prepared, session Session, caps ...any) Envelope {
	return Envelope{}
}

// Execute is Prepare, Clamp with the tool's own limits, and Run.
func (s *Snapshot) Execute(ctx context.Context, id string, mode Mode, raw json.RawMessage, session Session, caps ...any) Envelope {
	return Envelope{}
}

// UnknownTool is the name under which Stats counts calls of tools that do not exist.
const UnknownTool = "(unknown)"

// ToolStats are the counters of one tool.
type ToolStats struct {
	// Calls counts envelopes made by Prepare's refusals and by Run.
	Calls int64
	// OK counts successes.
	OK int64
	// Errors counts failures by type.
	Errors map[ErrorType]int64
	// Duration and Slowest are of the calls that ran: sum and maximum.
	Duration time.Duration
	Slowest  time.Duration
	// OverBudget counts runs longer than the latency budget.
	OverBudget int64
	// LeftBehind is how many handlers run on after their deadline or cancellation, now.
	LeftBehind int64
	// Abandoned counts the handlers that ever did.
	Abandoned int64
}
