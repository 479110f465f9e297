package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/store"
)

// The errors of edits. Others are a *strict.Error with all that is wrong with a document, or wrap one of
// package store: ErrFull, ErrTooBig or ErrUnavailable.
var (
	// ErrUnknown: there is no such agent.
	ErrUnknown = errors.New("catalog: there is no such agent")
	// ErrExists: there is such an agent already.
	ErrExists = errors.New("catalog: there is such an agent already")
	// ErrChanged: the agent is not in the state that the caller has seen.
	ErrChanged = errors.New("catalog: the agent was changed meanwhile")
	// ErrFixed: the agent is of a file or of the configuration and is not edited, so that nothing can
	// be deleted.
	ErrFixed = errors.New("catalog: the agent is not edited")
)

// UsedError says that an agent cannot be deleted because others switch to it.
type UsedError struct{ By []string }

// Error names them.
func (e *UsedError) Error() string {
	return "catalog: these agents switch to it: " + strings.Join(e.By, ", ")
}

// keptLife is how long a version that was replaced is remembered: longer than a session lasts, unless
// its length is not limited.
const keptLife = 25 * time.Hour

// Seen says in which state the caller has seen an agent. The zero Seen fits every state.
type Seen struct {
	// Absent: not at all.
	Absent bool
	// Any: in any state. Tags: in one of those with these tags (Entry.Tag).
	Any  bool
	Tags []string
}

// fits reports whether an entry is as it was seen; a nil entry does not exist.
func (s Seen) fits(e *Entry) error {
	switch {
	case s.Absent && e != nil:
		return ErrExists
	case e == nil && (s.Any || s.Tags != nil), e != nil && s.Tags != nil && !slices.Contains(s.Tags, e.Tag()):
		return ErrChanged
	}
	return nil
}

// Edit is a document that somebody has written.
type Edit struct {
	// ID is the agent's; empty means that of the document.
	ID string
	// Name is the document's in problems, Data the document in YAML or JSON.
	Name string
	Data []byte
	Seen Seen
	// By is who writes it (auth.Principal.ID); it may be empty.
	By string
}

// Try returns the error of Put with the same edit, but for those of the store, and writes nothing.
func (c *Catalog) Try(e Edit) error {
	_, err := c.prepare(e)
	return err
}

// prepared is an edit that may be written.
type prepared struct {
	agent Agent
	was   *Entry // nil for a new agent
}

// prepare checks an edit against the agents as they are now.
func (c *Catalog) prepare(e Edit) (prepared, error) {
	if c.opts.Edits == nil {
		return prepared{}, ErrFixed
	}
	now := c.Snapshot()
	d := Read(e.Name, e.Data)
	id := d.Agent().ID
	if e.ID != "" && id != "" && id != e.ID {
		d.Problem("the document is of the agent %q, and not of %q", id, e.ID)
	}
	if id == c.opts.Default.ID && d.Agent().Disabled {
		d.Problem("%q is the agent of clients that name none, so it cannot have enabled: false", id)
	}
	w := c.opts.World()
	w.Agents = now.ids()
	a, err := d.Check(w)
	if err != nil {
		return prepared{}, err
	}
	was := now.byID[id]
	if err := e.Seen.fits(was); err != nil {
		return prepared{}, err
	}
	if was == nil && len(now.sorted) >= MaxAgents {
		return prepared{}, fmt.Errorf("%w: there are %d agents", store.ErrFull, len(now.sorted))
	}
	return prepared{a, was}, nil
}

// Put writes an edit, which all nodes see within milliseconds, and returns the agent. created says that
// no agent had that id. It fails if the agent is not as the caller has seen it, also if another node
// has changed it at the same moment.
func (c *Catalog) Put(ctx context.Context, e Edit) (entry *Entry, created bool, err error) {
	p, err := c.prepare(e)
	if err != nil {
		return nil, false, err
	}
	a, was := p.agent, p.was
	if err := c.keep(ctx, was); err != nil {
		return nil, false, err
	}
	edit := store.AgentEdit{ID: a.ID, Document: a.Encoded(), At: time.Now().UTC(), By: e.By}
	if edit.Revision, err = c.opts.Edits.Save(ctx, edit, revisionOf(was)); err != nil {
		return nil, false, changed(err)
	}
	if err := c.settlePut(ctx, edit, was); err != nil {
		return nil, false, err
	}
	return &Entry{Agent: a, Document: a, Source: SourceStore, Version: a.Version(), Revision: edit.Revision, UpdatedAt: edit.At, UpdatedBy: edit.By}, was == nil, nil
}

// TryDelete returns the error of Delete, but for those of the store, and writes nothing.
func (c *Catalog) TryDelete(id string, seen Seen) error {
	_, _, err := c.deletable(id, seen)
	return err
}

// deletable returns an agent that may be deleted; stays says that a lower layer has it, too.
func (c *Catalog) deletable(id string, seen Seen) (was *Entry, stays bool, err error) {
	now := c.Snapshot()
	if was = now.byID[id]; was == nil {
		return nil, false, ErrUnknown
	}
	if err := seen.fits(was); err != nil {
		return nil, false, err
	}
	if was.Source != SourceStore {
		return nil, false, ErrFixed
	}
	if _, stays = c.base.Load().Get(id); !stays {
		if by := now.UsedBy(id); len(by) > 0 {
			return nil, false, &UsedError{By: by}
		}
	}
	return was, stays, nil
}

// Delete ends an agent's edit. The agent of a file or of the configuration is then as it was before the
// edit; another one is gone, and must not be one that others switch to (*UsedError).
func (c *Catalog) Delete(ctx context.Context, id string, seen Seen) error {
	was, stays, err := c.deletable(id, seen)
	if err != nil {
		return err
	}
	if err := c.keep(ctx, was); err != nil {
		return err
	}
	revision, err := c.opts.Edits.Remove(ctx, id, was.Revision)
	if err != nil || stays {
		return changed(err)
	}
	return c.settleDelete(ctx, was, revision)
}

// keep remembers a version that is about to be replaced, for sessions that began with it.
func (c *Catalog) keep(ctx context.Context, was *Entry) error {
	if was == nil || was.Version == "" {
		return nil
	}
	return c.opts.Edits.Keep(ctx, store.AgentEdit{ID: was.ID, Document: was.Document.Encoded(), At: time.Now(), By: was.UpdatedBy}, was.Version, keptLife)
}

func revisionOf(e *Entry) uint64 {
	if e == nil {
		return 0
	}
	return e.Revision
}

func changed(err error) error {
	if errors.Is(err, store.ErrChanged) {
		return ErrChanged
	}
	return err
}

// Pinned returns an agent in a version, if it has that or had it within the last day, otherwise as it is
// now; nil if no agent has that id.
func (c *Catalog) Pinned(ctx context.Context, id, version string) *Entry {
	now := c.Snapshot()
	e := now.byID[id]
	if e != nil && e.Version == version || version == "" || c.opts.Edits == nil {
		return e
	}
	old, err := c.opts.Edits.Kept(ctx, id, version)
	if err != nil {
		if !errors.Is(err, store.ErrUnknown) {
			c.opts.Logger.Warn("an agent's older version cannot be read", "agent", id, "agent_version", version, "error", err)
		}
		return e
	}
	w := c.opts.World()
	w.Agents = now.ids()
	if was := c.entry(old, w); was != nil && was.Version == version {
		return was
	}
	return e
}
