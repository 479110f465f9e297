// Package spec parses and checks a tool's declaration in schema.json, a [Spec], without a handler: see [Parse].
// [Read] also returns the compiled parts for package registry, which loads and runs the tools.
package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"voicegw/registry/document"
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
	MaxAgent         = 64
	DefaultTimeoutMS = 10_000
	// MaxToolID limits toolId, in bytes: the lowest limit of the providers.
	MaxToolID = 64
	// MaxDescription limits a tool's description, in characters.
	MaxDescription = 1024
	// MaxSummary limits a guide's summary, in characters.
	MaxSummary = 250
)

// Spec is a tool's schema.json. A value from [Parse] without problems is complete (TimeoutMS is set) and consistent.
type Spec struct {
	ToolID string `json:"toolId"`
	// VariantOf is the id of the tool that this is a variant of: a share of the users gets it under that id. Empty
	// for other tools. See registry.Snapshot.Draw.
	VariantOf   string      `json:"variantOf,omitempty"`
	Version     string      `json:"version"`
	Title       string      `json:"title,omitempty"`
	Tags        []string    `json:"tags,omitempty"`
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
	// Requires are scopes that a session or turn must have, see registry.Snapshot.Permitted. May be nil.
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
	// Behavior and Scheduling are for the providers that support them; may be empty.
	Behavior   string `json:"behavior,omitempty"`
	Scheduling string `json:"scheduling,omitempty"`
	// Cancellable means that an interruption or the provider may cancel a running call.
	Cancellable bool `json:"cancellable,omitempty"`
	// IdempotencyKey is a template for the business key: two calls with the same key are the same operation. See
	// registry.Prepared.BusinessKey.
	IdempotencyKey string                  `json:"idempotencyKey,omitempty"`
	Preview        string                  `json:"preview,omitempty"`
	Clamp          map[Mode]map[string]int `json:"clamp,omitempty"`
	// Settings are the tool's own settings by name; may be nil.
	Settings map[string]Setting `json:"settings,omitempty"`
	// Network are the hosts that a handler in JavaScript may reach with fetch: a host with an optional port (HTTPS), an
	// http:// or https:// origin, or {settings.name} for that of a setting. May be nil.
	Network []string `json:"network,omitempty"`
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

// RateLimit limits the calls of a user to Calls within each sliding Window. Calls are counted in memory, so long
// windows make no sense.
type RateLimit struct {
	Calls int `json:"calls"`
	// Window is a duration as the author wrote it, such as "1h"; see [RateLimit.Within].
	Window string `json:"window"`
}

// Within returns the window; zero if invalid, which [Parse] reports.
func (l RateLimit) Within() time.Duration { return durationUpTo(l.Window, 24*time.Hour) }

// String returns text such as "5 in 1h".
func (l RateLimit) String() string { return fmt.Sprintf("%d in %s", l.Calls, l.Window) }

func durationUpTo(text string, most time.Duration) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > most {
		return 0
	}
	return d
}

// Job means that calls may start background jobs.
type Job struct {
	Name string `json:"name"`
	// Longest limits an attempt, as the author wrote it, such as "30m"; see [Job.Within].
	Longest string `json:"longest"`
	// AtOnce limits a user's concurrent jobs of the tool.
	AtOnce int `json:"atOnce"`
}

// Within returns the time limit of an attempt; zero if invalid, which [Parse] reports.
func (j Job) Within() time.Duration { return durationUpTo(j.Longest, 6*time.Hour) }

// String describes the limits.
func (j Job) String() string {
	return fmt.Sprintf("%s: at most %s, %d at once for each user", j.Name, j.Longest, j.AtOnce)
}

// Limits of a session's scopes.
const (
	MaxScopes     = 32
	MaxScopeBytes = 64
)

// ValidScope reports whether a text is a scope: 1 to MaxScopeBytes ASCII letters, digits or . _ : / -.
var ValidScope = matching(`[A-Za-z0-9._:/-]+`, MaxScopeBytes)

// ValidFeature reports whether a feature may have that name.
var ValidFeature = matching(`[a-z][a-z0-9]*([-_][a-z0-9]+)*`, 64)

// ModeNames returns the modes as texts.
func ModeNames(modes []Mode) []string {
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = string(m)
	}
	return names
}

// Writes reports whether calls change something outside the gateway.
func (s *Spec) Writes() bool { return s.SideEffects == SideEffectsWrites }

// MayRepeat reports whether a call may run again after a failure.
func (s *Spec) MayRepeat() bool { return s.Idempotent || !s.Writes() }

// Allows reports whether a mode may call the tool.
func (s *Spec) Allows(mode Mode) bool {
	return slices.Contains(s.AllowedModes, mode)
}

// ConfirmAction is the tool by which a model reports the user's spoken approval. The gateway declares it if spoken
// approval is allowed, and handles its calls before the registry's tools, which must not have that name.
const ConfirmAction = "confirm_action"

// AgentSwitch is the tool by which a model hands the conversation over to another agent.
const AgentSwitch = "agent_switch"

// DescribeTool is the built-in tool that gives a model the full guide of a tool. It is in every snapshot and not in
// files.
const DescribeTool = "describe_tool"

// ReservedNames lists the sorted ids of the gateway's own tools, which other tools must not have. Every own tool must
// be here; the build, the registry's loading and the gateway use only this list.
func ReservedNames() []string {
	return []string{AgentSwitch, ConfirmAction, DescribeTool}
}

// Reserved returns the reason why no tool may have that id, as the end of a sentence, or an empty string. A name that
// differs from a reserved one only in case, dashes or underscores is reserved too, because models would confuse them.
func Reserved(id string) string {
	for _, name := range ReservedNames() {
		switch {
		case id == name:
			return "belongs to a tool that is built in"
		case Folded(id) == Folded(name):
			return fmt.Sprintf("looks the same to a model as %q, which is built in", name)
		}
	}
	return ""
}

// Lookalikes finds ids that differ only in case, dashes or underscores, and maps each to the alphabetically first
// one.
func Lookalikes(ids []string) map[string]string {
	first, twins := map[string]string{}, map[string]string{}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if before, has := first[Folded(id)]; !has {
			first[Folded(id)] = id
		} else if before != id {
			twins[id] = before
		}
	}
	return twins
}

// Folded removes the differences that Lookalikes ignores.
func Folded(id string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(id))
}

// Disagreements returns a problem for each field that must be equal for v to be a variant of the tool of. The cost, side
// effects and requirements of a call must not depend on the drawn version; arguments and answers may.
func Disagreements(of, v *Spec) []document.Problem {
	var problems []document.Problem
	differs := func(key, why string) {
		problems = append(problems, document.Problem{Path: document.Pointer{key}.String(),
			Message: "\"" + key + "\" must be that of " + of.ToolID + " because this is a version of it: " + why + "."})
	}
	for _, f := range []struct {
		key, why string
		same     bool
	}{
		{"category", "budgets and prompts depend on it", of.Category == v.Category},
		{"sideEffects", "the permitted changes must not depend on the version", of.SideEffects == v.SideEffects},
		{"requiresConfirmation", "the need for approval must not depend on the version",
			of.RequiresConfirmation == v.RequiresConfirmation},
		{"confirmWhen", "the need for approval must not depend on the version", reflect.DeepEqual(of.ConfirmWhen, v.ConfirmWhen)},
		{"allowedModes", "a user who gets the version would lack the tool by voice or in text",
			sameSet(of.AllowedModes, v.AllowedModes)},
		{"requires", "access to the tool must not depend on the version", sameSet(of.Requires, v.Requires)},
		{"availability", "access to the tool must not depend on the version", reflect.DeepEqual(of.Availability, v.Availability)},
		{"rateLimit", "both versions count together", reflect.DeepEqual(of.RateLimit, v.RateLimit)},
		{"idempotencyKey", "each version must recognize the other's side effects", of.IdempotencyKey == v.IdempotencyKey},
	} {
		if !f.same {
			differs(f.key, f.why)
		}
	}
	if of.VariantOf != "" {
		problems = append(problems, document.Problem{Path: "/variantOf", Message: of.ToolID + " is itself a version of " +
			of.VariantOf + "; name that one."})
	}
	if of.Job != nil || v.Job != nil {
		problems = append(problems, document.Problem{Path: "/variantOf",
			Message: "A tool with a job cannot have versions: a job may continue after its user gets another version, which " +
				"could not read its payload."})
	}
	if of.Version == v.Version {
		problems = append(problems, document.Problem{Path: "/version", Message: "The version " + v.Version + " is also that of " +
			of.ToolID + "; the audit tells versions apart by it."})
	}
	return problems
}

func sameSet[T comparable](a, b []T) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x T) bool { return !slices.Contains(b, x) })
}
