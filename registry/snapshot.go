package registry

import (
	"slices"

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
