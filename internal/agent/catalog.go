package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/internal/strict"
	"voicegw/store"
)

// Options configure a Catalog. Default and World are required.
type Options struct {
	// Default is the configuration's agent. Its ID may be any text.
	Default Agent
	Files   []Agent
	// World returns the tools and providers that documents may refer to. It may be called concurrently.
	World  func() World
	Edits  *store.Agents
	Logger *slog.Logger
}

// Catalog holds a gateway's agents. Its methods may be used concurrently.
type Catalog struct {
	opts Options

	base    atomic.Pointer[Snapshot] // without the edits
	current atomic.Pointer[dated]
	making  sync.Mutex // held while current is rebuilt
}

// dated is a snapshot with the base layer and edits generation it was built from.
type dated struct {
	*Snapshot
	base       *Snapshot
	generation uint64
}

// New returns a Catalog.
func New(o Options) *Catalog {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c := &Catalog{opts: o}
	c.base.Store(c.layered(o.Files))
	return c
}

func (c *Catalog) layered(files []Agent) *Snapshot {
	o := c.opts
	normal := []*Entry{{Agent: o.Default, Document: o.Default, Source: SourceConfig}}
	entries := make([]*Entry, 0, len(files))
	for _, a := range files {
		entries = append(entries, &Entry{Agent: a, Document: a, Source: SourceFile, Version: a.Version()})
	}
	return newSnapshot(o.Default.ID, normal, entries)
}

// Reload replaces the agents of files. Replaced versions are saved for their sessions, if the store answers until ctx
// ends.
func (c *Catalog) Reload(ctx context.Context, files []Agent) {
	was, now := c.base.Load(), c.layered(files)
	c.base.Store(now)
	c.Snapshot()
	if c.opts.Edits == nil {
		return
	}
	for _, e := range was.sorted {
		if next := now.byID[e.ID]; next != nil && next.Version == e.Version {
			continue
		}
		if err := c.keep(ctx, e); err != nil {
			c.opts.Logger.Warn("cannot save replaced agent for its sessions", "agent", e.ID, "agent_version", e.Version, "error", err)
			return
		}
	}
}

// SameFiles reports whether Reload would change nothing.
func (c *Catalog) SameFiles(files []Agent) bool {
	now, then := c.base.Load(), c.layered(files)
	return now.version == then.version && len(now.sorted) == len(then.sorted)
}

// Snapshot returns the current agents. It does not wait for the store.
func (c *Catalog) Snapshot() *Snapshot {
	base := c.base.Load()
	if c.opts.Edits == nil {
		return base
	}
	if now := c.current.Load(); now != nil && now.base == base && now.generation == c.opts.Edits.Generation() {
		return now.Snapshot
	}
	c.making.Lock()
	defer c.making.Unlock()
	was := c.current.Load()
	base = c.base.Load()
	edits, generation := c.opts.Edits.List()
	if was != nil && was.base == base && was.generation == generation {
		return was.Snapshot
	}
	next := &dated{base: base, generation: generation, Snapshot: base}
	if len(edits) > 0 {
		next.Snapshot = newSnapshot(c.opts.Default.ID, base.sorted, c.entries(edits, base, was))
	}
	c.current.Store(next)
	return next.Snapshot
}

func (c *Catalog) entries(edits []store.AgentEdit, base *Snapshot, was *dated) []*Entry {
	w := c.opts.World()
	ids := map[string]bool{}
	for _, e := range edits {
		ids[e.ID] = true
	}
	for _, id := range base.ids() {
		ids[id] = true
	}
	w.Agents = slices.Sorted(maps.Keys(ids))
	w = w.Indexed()
	list := make([]*Entry, 0, len(edits))
	for _, e := range edits {
		if was != nil {
			if old, ok := was.byID[e.ID]; ok && old.Revision == e.Revision && len(old.Problems) == 0 &&
				!slices.ContainsFunc(old.SwitchTo, func(name string) bool { return !ids[name] }) {
				list = append(list, old)
				continue
			}
		}
		if entry := c.entry(e, w); entry != nil {
			list = append(list, entry)
		}
	}
	return list
}

// entry reads an edit, perhaps of a node with other tools, and drops its invalid parts; nil if nothing remains.
func (c *Catalog) entry(e store.AgentEdit, w World) *Entry {
	d := Read(e.ID, e.Document)
	document := d.Agent()
	if document.ID != e.ID || document.Playbook == "" {
		c.opts.Logger.Error("ignoring unreadable edited agent", "agent", e.ID, "revision", e.Revision)
		return nil
	}
	works, err := d.Check(w)
	entry := &Entry{
		Agent: works, Document: document, Source: SourceStore, Version: document.Version(), Revision: e.Revision,
		UpdatedAt: e.At.UTC(), UpdatedBy: e.By, Problems: problemsOf(err),
	}
	if e.ID == c.opts.Default.ID {
		entry.Disabled = false
	}
	if err != nil {
		c.opts.Logger.Warn("edited agent is partly invalid on this gateway", "agent", e.ID, "revision", e.Revision,
			"problems", entry.Problems)
	}
	return entry
}

func problemsOf(err error) []string {
	found, ok := errors.AsType[*strict.Error](err)
	if !ok {
		return nil
	}
	list := make([]string, 0, len(found.Problems))
	for _, p := range found.Problems {
		list = append(list, p.Text)
	}
	return list
}

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
