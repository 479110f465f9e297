package spec

import (
	"encoding/json"
	"slices"
)

// Mode is the kind of conversation from which a tool is called.
type Mode string

// The modes.
const (
	ModeText  Mode = "text"
	ModeVoice Mode = "voice"
)

// Category classifies a tool for budgets and for the prompt.
type Category string

// The categories.
const (
	CategoryRetrieval Category = "retrieval"
	CategoryAction    Category = "action"
	CategoryUtility   Category = "utility"
)

// SideEffects says whether and how a tool changes the world.
type SideEffects string

// The kinds of side effects. Only SideEffectsWrites changes anything outside the gateway.
const (
	SideEffectsNone     SideEffects = "none"
	SideEffectsReadOnly SideEffects = "read_only"
	SideEffectsWrites   SideEffects = "writes"
)

// The values of [Spec.Behavior] and [Spec.Scheduling]; empty means the provider's default.
const (
	BehaviorBlocking    = "blocking"
	BehaviorNonBlocking = "non_blocking"

	SchedulingInterrupt = "interrupt"
	SchedulingWhenIdle  = "when_idle"
	SchedulingSilent    = "silent"
)

// The limits of a spec.
const (
	// maxSpecBytes is the largest schema.json.
	maxSpecBytes = 128 << 10
	// MaxAgent is the longest id of an agent, in bytes.
	MaxAgent = 64
	// DefaultTimeoutMS is the timeout of a handler whose spec gives none, in ms.
	DefaultTimeoutMS = 10_000
	// MaxTimeoutMS is the longest timeout that a spec may give, in ms.
	MaxTimeoutMS = 300_000
	// MaxToolID is the longest toolId, in bytes: the lowest limit among the providers.
	MaxToolID = 64
	// MaxDescription is the longest description of a tool, in characters.
	MaxDescription = 1024
	// MaxSummary is the longest summary of a guide, in characters.
	MaxSummary = 250
)

// Spec is a tool's schema.json. [Parse] reads one from a file; a value that it
// returned without problems is complete (TimeoutMS is set) and consistent.
type Spec struct {
	// ToolID is the tool's name for a model: lower-case letters, digits and underscores,
	// a letter first, at most [MaxToolID].
	ToolID string `json:"toolId"`
	// VariantOf is the id of the tool of which this is another version, that a share of the users gets under that
	// id; empty for a tool of its own. See registry.Snapshot.Draw.
	VariantOf string `json:"variantOf,omitempty"`
	// Version is the tool's own version, in semantic versioning.
	Version string `json:"version"`
	// Title is the tool's name for people, at most 80 characters; empty if the author gives none. Tags are
	// words by which they find it, at most 10.
	Title string   `json:"title,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// Description tells a model what the tool does; it is sent along with the parameters.
	Description string      `json:"description"`
	Category    Category    `json:"category"`
	SideEffects SideEffects `json:"sideEffects"`
	// Idempotent says that calling it twice has the same effect as calling it once.
	Idempotent bool `json:"idempotent"`
	// RequiresConfirmation says that a person has to approve each call, or those that ConfirmWhen names.
	RequiresConfirmation bool `json:"requiresConfirmation"`
	// ConfirmWhen are conditions, of which one must hold for a person to be asked; nil means every call. See
	// registry.Prepared.NeedsApproval.
	ConfirmWhen  []ConfirmWhen `json:"confirmWhen,omitempty"`
	AllowedModes []Mode        `json:"allowedModes"`
	// Requires are scopes, at most [MaxScopes]: a session or a turn that lacks one of them does not get the
	// tool, see registry.Snapshot.Permitted. Nil if the author names none.
	Requires []string `json:"requires,omitempty"`
	// RateLimit bounds how often the tool runs for one user; nil means no limit.
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
	// Availability says when, where and for whom the tool is there; nil means always. See registry.Snapshot.Available.
	Availability *Availability `json:"availability,omitempty"`
	// Job says that calls may begin long work; nil means that the tool has none.
	Job *Job `json:"job,omitempty"`
	// LatencyBudgetMS is how long a call should take, in ms; a longer call is logged and
	// reported in the envelope's meta.
	LatencyBudgetMS int `json:"latencyBudgetMs"`
	// TimeoutMS is how long a call may take at most, in ms.
	TimeoutMS int `json:"timeoutMs,omitempty"`
	// Behavior is blocking or non_blocking; Scheduling is interrupt, when_idle or silent. They
	// are for the providers that support them; empty if the author did not choose.
	Behavior   string `json:"behavior,omitempty"`
	Scheduling string `json:"scheduling,omitempty"`
	// Cancellable says that an interruption or the provider may end a running call.
	Cancellable bool `json:"cancellable,omitempty"`
	// IdempotencyKey is a template over the arguments: the business key. Two calls with the
	// same key are the same operation. See registry.Prepared.BusinessKey.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Preview is a template over the arguments: the text that a confirmation shows.
	Preview string `json:"preview,omitempty"`
	// Clamp lowers numbers among the top-level arguments, by mode and name.
	Clamp map[Mode]map[string]int `json:"clamp,omitempty"`
	// Settings are the tool's own by name, at most 32; nil if it declares none.
	Settings map[string]Setting `json:"settings,omitempty"`
	// Parameters is the JSON Schema (draft 2020-12) of the arguments object, as written; of a tool
	// whose author gives none it is a closed object without properties.
	Parameters json.RawMessage `json:"parameters"`
	// Dynamic names the source of live values for enums of the parameters, by JSON pointers into these: see
	// registry.Snapshot.Fill and [LiveSources]. The parameters as written take any text there.
	Dynamic map[string]string `json:"dynamic,omitempty"`
	// Output is the JSON Schema of the data of an answer that is ok, as written; nil if the author
	// gives none. Data that does not fit reaches nobody: the answer is INTERNAL.
	Output json.RawMessage `json:"output,omitempty"`
}

// Allows reports whether the tool may be called in mode.
func (s *Spec) Allows(mode Mode) bool {
	return slices.Contains(s.AllowedModes, mode)
}
