package registry

import "encoding/json"

// Mode is the side a tool is called from.
type Mode string

// The modes.
const (
	ModeText  Mode = "text"
	ModeVoice Mode = "voice"
)

// Category classes a tool for budgets and for the prompt.
type Category string

// The categories.
const (
	CategoryRetrieval Category = "retrieval"
	CategoryAction    Category = "action"
	CategoryUtility   Category = "utility"
)

// SideEffects says what a tool does to the world.
type SideEffects string

// The kinds of side effects. Only SideEffectsWrites changes anything outside.
const (
	SideEffectsNone     SideEffects = "none"
	SideEffectsReadOnly SideEffects = "read_only"
	SideEffectsWrites   SideEffects = "writes"
)

// The values of [Spec.Behavior] and [Spec.Scheduling]; empty is the provider's own habit.
const (
	BehaviorBlocking    = "blocking"
	BehaviorNonBlocking = "non_blocking"

	SchedulingInterrupt = "interrupt"
	SchedulingWhenIdle  = "when_idle"
	SchedulingSilent    = "silent"
)

// The limits of a spec.
const (
	// DefaultTimeoutMS is the hard limit of a handler whose spec names none, in ms.
	DefaultTimeoutMS = 10_000
	// MaxTimeoutMS is the longest hard limit a spec may name, in ms.
	MaxTimeoutMS = 300_000
	// MaxToolID is the longest toolId, in bytes: the shortest limit of a provider.
	MaxToolID = 64
	// MaxDescription is the longest description of a tool, in characters.
	MaxDescription = 1024
	// MaxSummary is the longest summary of a guide, in characters.
	MaxSummary = 250
)

// Spec is a tool's schema.json. [ParseSpec] reads one from a file; a value that it
// returned without problems is complete (TimeoutMS is set) and consistent.
type Spec struct {
	// ToolID is the tool's name to a model: small letters, digits and underscores,
	// a letter first, at most [MaxToolID].
	ToolID string `json:"toolId"`
	// Version is the tool's own version, semver.
	Version string `json:"version"`
	// Description is what a model is told of the tool along with its parameters.
	Description string      `json:"description"`
	Category    Category    `json:"category"`
	SideEffects SideEffects `json:"sideEffects"`
	// Idempotent says that calling it twice does no more than calling it once.
	Idempotent bool `json:"idempotent"`
	// RequiresConfirmation says that a person has to approve each call.
	RequiresConfirmation bool   `json:"requiresConfirmation"`
	AllowedModes         []Mode `json:"allowedModes"`
	// LatencyBudgetMS is how long a call should take, in ms; more is logged and said
	// in the envelope's meta.
	LatencyBudgetMS int `json:"latencyBudgetMs"`
	// TimeoutMS is how long a call may take, in ms.
	TimeoutMS int `json:"timeoutMs,omitempty"`
	// Behavior is blocking or non_blocking, Scheduling interrupt, when_idle or
	// silent, for the providers that know them; empty where the author said nothing.
	Behavior   string `json:"behavior,omitempty"`
	Scheduling string `json:"scheduling,omitempty"`
	// Cancellable says that an interruption or the provider may end a running call.
	Cancellable bool `json:"cancellable,omitempty"`
	// IdempotencyKey is a template over the arguments: the business key, under which
	// two calls are the same deed. See [Prepared.BusinessKey].
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Preview is a template over the arguments: what a confirmation shows.
	Preview string `json:"preview,omitempty"`
	// Clamp lowers numbers among the top-level arguments, by mode and name.
	Clamp map[Mode]map[string]int `json:"clamp,omitempty"`
	// Parameters is the JSON Schema (draft 2020-12) of the arguments object, as written.
	Parameters json.RawMessage `json:"parameters"`
}

// Allows says whether the tool may be called in mode.
func (s *Spec) Allows(mode Mode) bool {
	for _, m := range s.AllowedModes {
		if m == mode {
			return true
		}
	}
	return false
}

// Problem is one thing wrong with a document that a person wrote or a build made.
type Problem struct {
	// Path is a JSON pointer (RFC 6901) into the document; empty is the whole.
	Path string `json:"path"`
	// Message says in a sentence or two what is wrong, why, and how to mend it.
	Message string `json:"message"`
}

// String is the path and the message on one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}
