package agent

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Source is the layer of an agent.
type Source string

// The sources, lowest layer first.
const (
	SourceConfig Source = "configuration"
	SourceFile   Source = "file"
	SourceStore  Source = "store"
)

// Entry is an agent in a gateway; immutable.
type Entry struct {
	// Agent is the effective agent on this node, Document the document as written.
	Agent
	Document Agent
	Source   Source
	Version  string
	// Revision is the store's of an edit, UpdatedAt its time in UTC, UpdatedBy its author (auth.Principal.ID).
	Revision  uint64
	UpdatedAt time.Time
	UpdatedBy string
	Problems  []string
}

// Tag identifies an entry's state for conditional requests: an edit's revision, otherwise the version.
func (e *Entry) Tag() string {
	if e.Revision > 0 {
		return strconv.FormatUint(e.Revision, 10)
	}
	return cmp.Or(e.Version, string(e.Source))
}

// Snapshot is an immutable set of all agents.
type Snapshot struct {
	version string
	normal  string
	byID    map[string]*Entry
	sorted  []*Entry
	names   []string
}

// newSnapshot merges layers: later entries replace earlier ones.
func newSnapshot(normal string, layers ...[]*Entry) *Snapshot {
	s := &Snapshot{normal: normal, byID: map[string]*Entry{}}
	for _, layer := range layers {
		for _, e := range layer {
			s.byID[e.ID] = e
		}
	}
	versions := map[string]string{}
	for _, e := range s.byID {
		s.sorted = append(s.sorted, e)
		if e.Source != SourceConfig {
			versions[e.ID] = e.Version
		}
	}
	slices.SortFunc(s.sorted, func(a, b *Entry) int { return cmp.Compare(a.ID, b.ID) })
	for _, e := range s.sorted {
		if !e.Disabled {
			s.names = append(s.names, e.ID)
		}
	}
	s.version = VersionOf(versions)
	return s
}

// Version identifies the content of all documents; empty without any.
func (s *Snapshot) Version() string { return s.version }

// Default is the ID of the default agent.
func (s *Snapshot) Default() string { return s.normal }

// All returns all agents, sorted by ID. The caller must not modify the slice.
func (s *Snapshot) All() []*Entry { return s.sorted }

// Names returns the IDs of agents that may start a conversation, sorted. The caller must not modify the slice.
func (s *Snapshot) Names() []string { return s.names }

// Get returns the agent with this ID, enabled or not.
func (s *Snapshot) Get(id string) (*Entry, bool) {
	e, ok := s.byID[id]
	return e, ok
}

// UsedBy returns the IDs of agents that may switch to this one, sorted.
func (s *Snapshot) UsedBy(id string) []string {
	var by []string
	for _, e := range s.sorted {
		if slices.Contains(e.SwitchTo, id) {
			by = append(by, e.ID)
		}
	}
	return by
}

func (s *Snapshot) ids() []string {
	ids := make([]string, 0, len(s.sorted))
	for _, e := range s.sorted {
		ids = append(ids, e.ID)
	}
	return ids
}
