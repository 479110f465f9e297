package registry

import (
	"maps"
	"slices"
	"strings"

	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// Tool is a tool of a [Snapshot]; immutable.
type Tool struct {
	Entry
	compiled *spec.Compiled
	handler  Handler
	sources  map[spec.Mode][]source
	client   bool // run by the client; see Declare
	// variant is the tool's own id if it is a variant, which has the ToolID of another tool; share is the percentage
	// of users who get it.
	variant string
	share   int
}

// Variant returns the tool's own id if it is a variant of another tool, otherwise an empty string.
func (t *Tool) Variant() string { return t.variant }

// Snapshot holds the tools of a version; immutable, and safe for concurrent use.
type Snapshot struct {
	version string
	tools   map[string]*Tool
	sorted  []*Tool
	closed  map[string]*Tool // outside their times, see Available; may be nil
	off     []string         // disabled by the configuration, sorted
	unset   []Unset          // those in off that lack settings, sorted

	variants *variants // of a loaded snapshot; nil without variants
	drawn    *drawn    // nil before Draw

	loaded   *Snapshot        // the loaded snapshot that contains these tools
	fillings *kept[*Snapshot] // shared by loaded and all its subsets
	filled   string           // hash of the filled values; empty before Fill
	switches *kept[*Tool]     // of the registry, see Switching
	opts     *Options
	stats    *stats
}

// Version returns the registry file's version.
func (s *Snapshot) Version() string { return s.version }

// Tools returns the tools of a mode, sorted by id. The caller owns the slice.
func (s *Snapshot) Tools(mode spec.Mode) []*Tool {
	var tools []*Tool
	for _, t := range s.sorted {
		if t.Allows(mode) {
			tools = append(tools, t)
		}
	}
	return tools
}

// All returns the tools of all modes, sorted by id. The caller owns the slice.
func (s *Snapshot) All() []*Tool { return slices.Clone(s.sorted) }

// Tool returns a tool in any mode, even outside its times.
func (s *Snapshot) Tool(id string) (*Tool, bool) {
	t, ok := s.tools[id]
	if !ok {
		t, ok = s.closed[id]
	}
	return t, ok
}

// Refuse returns the caller's refusal of a call and counts it. For an unknown tool the answer has no version.
func (s *Snapshot) Refuse(id string, e *Error) Envelope {
	env := Envelope{Error: e, Meta: Meta{Tool: document.Shorten(id, 100), RegistryVersion: s.version,
		ResponseSchemaVersion: ResponseSchemaVersion}}
	name := UnknownTool
	if t, ok := s.tools[id]; ok {
		env.Meta.ToolVersion, name = t.Version, t.counted()
	}
	s.stats.done(name, &env)
	return env
}

// Only returns a snapshot of the same version with only the tools of these ids, the client's tools, and the built-in
// ones, which then use this snapshot. Unknown ids are ignored. If none of the ids is known, the built-in tools are
// dropped too.
func (s *Snapshot) Only(ids []string) *Snapshot {
	return s.having(func(t *Tool) bool { return slices.Contains(ids, t.ToolID) })
}

func (s *Snapshot) having(fits func(*Tool) bool) *Snapshot {
	some := slices.ContainsFunc(s.sorted, func(t *Tool) bool { return !isBuiltin(t.ToolID) && fits(t) })
	var tools []*Tool
	for _, t := range s.sorted {
		if t.client || isBuiltin(t.ToolID) && some || !isBuiltin(t.ToolID) && fits(t) {
			tools = append(tools, t)
		}
	}
	sub := s.holding(tools)
	sub.closed = maps.Clone(s.closed)
	maps.DeleteFunc(sub.closed, func(_ string, t *Tool) bool { return !fits(t) })
	return sub
}

// holding returns a snapshot of the same version with these tools, in any order, and without variants.
func (s *Snapshot) holding(tools []*Tool) *Snapshot {
	sub := *s
	sub.variants, sub.tools = nil, make(map[string]*Tool, len(tools))
	sub.sorted = slices.SortedFunc(slices.Values(tools), func(a, b *Tool) int { return strings.Compare(a.ToolID, b.ToolID) })
	for _, t := range sub.sorted {
		sub.tools[t.ToolID] = t
	}
	return &sub
}

func isBuiltin(id string) bool { return id == spec.DescribeTool }

func (t *Tool) permits(scopes []string) bool {
	if a := t.Availability; a != nil && len(a.Scopes) > 0 &&
		!slices.ContainsFunc(a.Scopes, func(one string) bool { return slices.Contains(scopes, one) }) {
		return false
	}
	return !slices.ContainsFunc(t.Requires, func(needed string) bool { return !slices.Contains(scopes, needed) })
}

// Permitted returns a snapshot of the same version without the tools that need more scopes. If no tool other than the
// client's and the built-in ones is left, the built-in ones are dropped too, as in [Snapshot.Only]. A nil snapshot
// stays nil.
func (s *Snapshot) Permitted(scopes []string) *Snapshot {
	if s == nil || !slices.ContainsFunc(s.sorted, func(t *Tool) bool { return !t.permits(scopes) }) {
		return s
	}
	return s.having(func(t *Tool) bool { return t.permits(scopes) })
}

// Selection selects the tools of a session or a text turn.
type Selection struct {
	// Session's agent, mode, user, scopes and Now count.
	Session Session
	// Only are the ids of the agent's tools; nil means all.
	Only []string
	// Live returns live values for enums; see [Snapshot.Fill].
	Live LiveValues
	// SwitchTo are the agents that the agent may hand the user over to; see [Snapshot.Switching].
	SwitchTo []SwitchTarget
}

// For returns the snapshot for a session or a text turn. It applies the agent's tools, required scopes, availability,
// and live values, so that a model can call exactly the tools it gets. A nil snapshot stays nil.
func (s *Snapshot) For(sel Selection) *Snapshot {
	if s == nil {
		return nil
	}
	if sel.Only != nil {
		s = s.Only(sel.Only)
	}
	return s.Permitted(sel.Session.Scopes).Available(sel.Session).Fill(sel.Session, sel.Live).Switching(sel.SwitchTo)
}
