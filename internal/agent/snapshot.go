package agent

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Source says where an agent comes from.
type Source string

// The sources, from the lowest layer to the highest.
const (
	SourceConfig Source = "configuration"
	SourceFile   Source = "file"
	SourceStore  Source = "store"
)

// Entry is an agent as the gateway has it; immutable.
type Entry struct {
	// Agent is how it works on this node, Document how it was written.
	Agent
	Document Agent
	Source   Source
	// Version is that of the content. It is empty for the agent of the configuration, which is no
	// document.
	Version string
	// Revision counts the edits of the store; zero for an agent that is not edited. UpdatedAt is when it
	// was edited, in UTC, and UpdatedBy by whom (auth.Principal.ID).
	Revision  uint64
	UpdatedAt time.Time
	UpdatedBy string
	// Problems are what is wrong with it on this node. It works with what is right.
	Problems []string
}

// Tag identifies the state of an entry, for conditional requests: the revision of an edited agent, the
// version of another one.
func (e *Entry) Tag() string {
	if e.Revision > 0 {
		return strconv.FormatUint(e.Revision, 10)
	}
	return cmp.Or(e.Version, string(e.Source))
}

// Snapshot holds all agents at one moment; immutable.
type Snapshot struct {
	version string
	normal  string
	byID    map[string]*Entry
	sorted  []*Entry
	names   []string
}

// newSnapshot makes a snapshot of layers: a later entry replaces an earlier one of the same id.
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

// Version identifies the content of all documents; empty if there is no document.
func (s *Snapshot) Version() string { return s.version }

// Default is the id of the agent for clients that name none.
func (s *Snapshot) Default() string { return s.normal }

// All returns all agents, sorted by id. The caller must not change the slice.
func (s *Snapshot) All() []*Entry { return s.sorted }

// Names returns the ids of the agents that may begin a conversation, sorted. The caller must not change
// the slice.
func (s *Snapshot) Names() []string { return s.names }

// Get returns the agent with that id, enabled or not.
func (s *Snapshot) Get(id string) (*Entry, bool) {
	e, ok := s.byID[id]
	return e, ok
}

// UsedBy returns the ids of the agents that may switch to one, sorted.
func (s *Snapshot) UsedBy(id string) []string {
	var by []string
	for _, e := range s.sorted {
		if slices.Contains(e.SwitchTo, id) {
			by = append(by, e.ID)
		}
	}
	return by
}

// ids returns the ids of all agents, sorted.
func (s *Snapshot) ids() []string {
	ids := make([]string, 0, len(s.sorted))
	for _, e := range s.sorted {
		ids = append(ids, e.ID)
	}
	return ids
}
