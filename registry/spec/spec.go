package spec

import (
	"encoding/json"
	"slices"
)

// Mode is the kind of a conversation.
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

// Values of [Spec.Behavior] and [Spec.Scheduling]; empty means the provider's default.
const (
	BehaviorBlocking    = "blocking"
	BehaviorNonBlocking = "non_blocking"

	SchedulingInterrupt = "interrupt"
	SchedulingWhenIdle  = "when_idle"
	SchedulingSilent    = "silent"
)

// Limits of a spec.
const (
	// maxSpecBytes limits schema.json.
	maxSpecBytes = 128 << 10
	// MaxAgent limits an agent's id, in bytes.
	MaxAgent = 64
	// DefaultTimeoutMS is the default of Spec.TimeoutMS.
	DefaultTimeoutMS = 10_000
	// MaxTimeoutMS limits Spec.TimeoutMS.
	MaxTimeoutMS = 300_000
	// MaxToolID limits toolId, in bytes: the lowest limit of the providers.
	MaxToolID = 64
	// MaxDescription limits a tool's description, in characters.
	MaxDescription = 1024
	// MaxSummary limits a guide's summary, in characters.
	MaxSummary = 250
)

// Spec is a tool's schema.json. A value from [Parse] without problems is complete (TimeoutMS is set) and consistent.
type Spec struct {
	// ToolID is the tool's name for models: at most [MaxToolID] lower-case letters, digits and underscores, starting
	// with a letter.
	ToolID string `json:"toolId"`
	// VariantOf is the id of the tool that this is a variant of: a share of the users gets it under that id. Empty
	// for other tools. See registry.Snapshot.Draw.
	VariantOf string `json:"variantOf,omitempty"`
	// Version is the tool's semantic version.
	Version string `json:"version"`
	// Title is the tool's name for people, at most 80 characters; may be empty. Tags are at most 10 search words.
	Title string   `json:"title,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// Description explains the tool to models; they get it with the parameters.
	Description string      `json:"description"`
	Category    Category    `json:"category"`
	SideEffects SideEffects `json:"sideEffects"`
	// Idempotent means that calling the tool twice has the same effect as once.
	Idempotent bool `json:"idempotent"`
	// RequiresConfirmation means that a person must approve each call, or those in ConfirmWhen.
	RequiresConfirmation bool `json:"requiresConfirmation"`
	// ConfirmWhen are conditions; approval is needed if one holds. Nil means every call. See
	// registry.Prepared.NeedsApproval.
	ConfirmWhen  []ConfirmWhen `json:"confirmWhen,omitempty"`
	AllowedModes []Mode        `json:"allowedModes"`
	// Requires are scopes, at most [MaxScopes], that a session or turn must have, see registry.Snapshot.Permitted.
	// May be nil.
	Requires []string `json:"requires,omitempty"`
	// RateLimit limits a user's calls; nil means no limit.
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
	// Availability limits when, where and for whom the tool is available; nil means always. See
	// registry.Snapshot.Available.
	Availability *Availability `json:"availability,omitempty"`
	// Job means that calls may start background jobs; may be nil.
	Job *Job `json:"job,omitempty"`
	// LatencyBudgetMS is the expected maximum of a call, in ms; longer calls are logged and reported in the meta.
	LatencyBudgetMS int `json:"latencyBudgetMs"`
	// TimeoutMS limits a call, in ms.
	TimeoutMS int `json:"timeoutMs,omitempty"`
	// Behavior is blocking or non_blocking; Scheduling is interrupt, when_idle or silent. They are for the providers
	// that support them; may be empty.
	Behavior   string `json:"behavior,omitempty"`
	Scheduling string `json:"scheduling,omitempty"`
	// Cancellable means that an interruption or the provider may cancel a running call.
	Cancellable bool `json:"cancellable,omitempty"`
	// IdempotencyKey is a template for the business key: two calls with the same key are the same operation. See
	// registry.Prepared.BusinessKey.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Preview is a template for the text of an approval request.
	Preview string `json:"preview,omitempty"`
	// Clamp lowers top-level numbers, by mode and name.
	Clamp map[Mode]map[string]int `json:"clamp,omitempty"`
	// Settings are the tool's own settings by name, at most 32; may be nil.
	Settings map[string]Setting `json:"settings,omitempty"`
	// Parameters is the JSON Schema (draft 2020-12) of the arguments, as written; a closed object without properties
	// if the author omits it.
	Parameters json.RawMessage `json:"parameters"`
	// Dynamic maps JSON Pointers to enums of the parameters to sources of live values: see registry.Snapshot.Fill and
	// [LiveSources]. The parameters as written accept any string there.
	Dynamic map[string]string `json:"dynamic,omitempty"`
	// Output is the JSON Schema of a successful answer's data, as written; may be nil. If data doesn't match, the
	// answer is INTERNAL.
	Output json.RawMessage `json:"output,omitempty"`
}

// Allows reports whether a mode may call the tool.
func (s *Spec) Allows(mode Mode) bool {
	return slices.Contains(s.AllowedModes, mode)
}
