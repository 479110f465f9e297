package registry

import (
	"slices"

	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// Tool is one tool of a [Snapshot]; immutable.
type Tool struct {
	Entry
	compiled *spec.Compiled
	handler  Handler
	sources  map[spec.Mode][]source
	client   bool // the client runs it; see Declare
	// variant is the id of its own folder if it is a version beside another tool, whose ToolID it then has; share
	// is how many of 100 users get it.
	variant string
	share   int
}

// Variant returns the id of the tool's own folder if it is a version beside another tool, whose ToolID it
// has; empty otherwise.
func (t *Tool) Variant() string { return t.variant }

// Snapshot holds the tools of one version; immutable, and safe for concurrent use.
type Snapshot struct {
	version string
	tools   map[string]*Tool
	sorted  []*Tool
	closed  map[string]*Tool // withheld only because of the time, see Available; nil if nothing is
	off     []string         // left out by the configuration, sorted
	unset   []Unset          // those of them that lack settings, sorted

	variants *variants // of a loaded snapshot; nil if no tool has several versions
	drawn    *drawn    // nil before Draw

	loaded   *Snapshot        // the whole one that was loaded, of which this has tools
	fillings *kept[*Snapshot] // of loaded and all snapshots of its tools
	filled   string           // the hash of what enums were filled with; empty before Fill
	switches *kept[*Tool]     // of the registry, see Switching
	opts     *Options
	stats    *stats
}

// Version returns the version of the registry file.
func (s *Snapshot) Version() string { return s.version }

// Tools returns the tools allowed in mode, sorted by id. The caller owns the slice.
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

// Tool returns the tool with that id, in whatever modes it is allowed, also if its time is not now.
func (s *Snapshot) Tool(id string) (*Tool, bool) {
	t, ok := s.tools[id]
	if !ok {
		t, ok = s.closed[id]
	}
	return t, ok
}

// Refuse returns the answer to a call of the tool that the caller's own policy refuses; the
// statistics count it. For an unknown tool the answer has no version.
func (s *Snapshot) Refuse(id string, e *Error) Envelope {
	env := Envelope{Error: e, Meta: Meta{Tool: document.Shorten(id, 100), RegistryVersion: s.version, ResponseSchemaVersion: ResponseSchemaVersion}}
	name := UnknownTool
	if t, ok := s.tools[id]; ok {
		env.Meta.ToolVersion, name = t.Version, t.counted()
	}
	s.stats.done(name, &env)
	return env
}
