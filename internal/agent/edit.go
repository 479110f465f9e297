package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/internal/strict"
	"voicegw/store"
)

// The errors of edits, in addition to *strict.Error, store.ErrFull, ErrTooBig and ErrUnavailable.
var (
	ErrUnknown = errors.New("catalog: unknown agent")
	ErrExists  = errors.New("catalog: the agent already exists")
	ErrChanged = errors.New("catalog: the agent was changed in the meantime")
	// ErrFixed means the agent comes from a file or the configuration and has no edit to delete.
	ErrFixed = errors.New("catalog: the agent has no edit")
)

// UsedError means other agents switch to the one to delete.
type UsedError struct{ By []string }

func (e *UsedError) Error() string {
	return "catalog: these agents switch to it: " + strings.Join(e.By, ", ")
}

// keptLife is how long a replaced version is kept: longer than a session, unless its duration is unlimited.
const keptLife = 25 * time.Hour

// Seen is the state in which the caller last saw an agent. The zero Seen matches every state.
type Seen struct {
	Absent bool
	Any    bool
	Tags   []string
}

// fits reports whether an entry matches; nil means it doesn't exist.
func (s Seen) fits(e *Entry) error {
	switch {
	case s.Absent && e != nil:
		return ErrExists
	case e == nil && (s.Any || s.Tags != nil), e != nil && s.Tags != nil && !slices.Contains(s.Tags, e.Tag()):
		return ErrChanged
	}
	return nil
}

// Edit is a document to save.
type Edit struct {
	ID   string
	Name string
	Data []byte
	Seen Seen
	By   string
}

// Try returns Put's error, except the store's, without writing.
func (c *Catalog) Try(e Edit) error {
	_, _, err := c.prepare(e)
	return err
}

// prepare validates an edit. was is nil for a new agent.
func (c *Catalog) prepare(e Edit) (a Agent, was *Entry, err error) {
	if c.opts.Edits == nil {
		return a, nil, ErrFixed
	}
	now := c.Snapshot()
	d := Read(e.Name, e.Data)
	id := d.Agent().ID
	if e.ID != "" && id != "" && id != e.ID {
		d.Problem("the document's agent is %q, not %q", id, e.ID)
	}
	if id == c.opts.Default.ID && d.Agent().Disabled {
		d.Problem("%q is the default agent, so it cannot have enabled: false", id)
	}
	w := c.opts.World()
	w.Agents = now.ids()
	if a, err = d.Check(w); err != nil {
		return a, nil, err
	}
	was = now.byID[id]
	if err := e.Seen.fits(was); err != nil {
		return a, was, err
	}
	if was == nil && len(now.sorted) >= MaxAgents {
		return a, was, fmt.Errorf("%w: there are %d agents", store.ErrFull, len(now.sorted))
	}
	return a, was, nil
}

// Put saves an edit if the agent is in the state edit.Seen. created means the ID was new.
func (c *Catalog) Put(ctx context.Context, e Edit) (entry *Entry, created bool, err error) {
	a, was, err := c.prepare(e)
	if err != nil {
		return nil, false, err
	}
	var before uint64
	if was != nil {
		before = was.Revision
	}
	if err := c.keep(ctx, was); err != nil {
		return nil, false, err
	}
	edit := store.AgentEdit{ID: a.ID, Document: a.Encoded(), At: time.Now().UTC(), By: e.By}
	if edit.Revision, err = c.opts.Edits.Save(ctx, edit, before); err != nil {
		return nil, false, changed(err)
	}
	if err := c.settlePut(ctx, edit, was); err != nil {
		return nil, false, err
	}
	return &Entry{Agent: a, Document: a, Source: SourceStore, Version: a.Version(), Revision: edit.Revision, UpdatedAt: edit.At,
		UpdatedBy: edit.By}, was == nil, nil
}

// TryDelete returns Delete's error, except the store's, without writing.
func (c *Catalog) TryDelete(id string, seen Seen) error {
	_, _, err := c.deletable(id, seen)
	return err
}

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

// Delete removes an edit. An agent of a lower layer reverts; any other must not be in another's switch_to (*UsedError).
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

func (c *Catalog) keep(ctx context.Context, was *Entry) error {
	if was == nil || was.Version == "" {
		return nil
	}
	return c.opts.Edits.Keep(ctx, store.AgentEdit{ID: was.ID, Document: was.Document.Encoded(), At: time.Now(), By: was.UpdatedBy},
		was.Version, keptLife)
}

func changed(err error) error {
	if errors.Is(err, store.ErrChanged) {
		return ErrChanged
	}
	return err
}

// Pinned returns the given version of an agent if kept, otherwise the current one; nil if the ID is unknown.
func (c *Catalog) Pinned(ctx context.Context, id, version string) *Entry {
	now := c.Snapshot()
	e := now.byID[id]
	if e != nil && e.Version == version || version == "" || c.opts.Edits == nil {
		return e
	}
	old, err := c.opts.Edits.Kept(ctx, id, version)
	if err != nil {
		if !errors.Is(err, store.ErrUnknown) {
			c.opts.Logger.Warn("cannot read older version of agent", "agent", id, "agent_version", version, "error", err)
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

// Two nodes may write conflicting changes: one deletes an agent, the other switches to it. So each validates again
// after it has seen all earlier writes, and the later one, in the store's order, is reverted.

func (c *Catalog) settlePut(ctx context.Context, edit store.AgentEdit, was *Entry) error {
	d := Read(edit.ID, edit.Document)
	var risky []string // agents that exist only as an edit
	for _, id := range d.Agent().SwitchTo {
		if _, ok := c.base.Load().Get(id); !ok && (was == nil || !slices.Contains(was.Document.SwitchTo, id)) {
			risky = append(risky, id)
		}
	}
	if len(risky) == 0 || !c.follows(ctx, edit.ID, edit.Revision) {
		return nil
	}
	now := c.Snapshot()
	var gone []string
	for _, id := range risky {
		if _, ok := now.Get(id); ok {
			continue
		}
		// A later deleter has seen this edit and reverts the deletion.
		if at, err := c.opts.Edits.Removed(ctx, id); err == nil && at < edit.Revision {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	c.takeBack(ctx, edit.ID, edit.Revision, was)
	r := strict.NewReader(edit.ID)
	for _, id := range gone {
		r.Problem(nil, "switch_to names the agent %q, which was deleted concurrently", id)
	}
	return r.Err()
}

func (c *Catalog) settleDelete(ctx context.Context, was *Entry, revision uint64) error {
	if !c.follows(ctx, was.ID, revision) {
		return nil
	}
	var by []string
	for _, e := range c.Snapshot().sorted {
		// A later writer has seen the deletion and reverts its own edit.
		if e.Revision < revision && slices.Contains(e.Document.SwitchTo, was.ID) {
			by = append(by, e.ID)
		}
	}
	if len(by) == 0 {
		return nil
	}
	c.takeBack(ctx, was.ID, 0, was)
	return &UsedError{By: by}
}

// follows waits until this node has seen all writes up to a revision. If the store fails, both changes stay, with a
// problem.
func (c *Catalog) follows(ctx context.Context, id string, revision uint64) bool {
	err := c.opts.Edits.Follow(ctx, revision)
	if err != nil {
		c.opts.Logger.Warn("edit saved without a check for concurrent edits", "agent", id, "revision", revision, "error", err)
	}
	return err == nil
}

// takeBack restores an agent unless it has changed since. revision is 0 after a deletion; was is nil for a new agent.
func (c *Catalog) takeBack(ctx context.Context, id string, revision uint64, was *Entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	var err error
	if was == nil || was.Source != SourceStore {
		_, err = c.opts.Edits.Remove(ctx, id, revision)
	} else {
		_, err = c.opts.Edits.Save(ctx, store.AgentEdit{ID: id, Document: was.Document.Encoded(), At: was.UpdatedAt,
			By: was.UpdatedBy}, revision)
	}
	if err != nil && !errors.Is(err, store.ErrChanged) {
		c.opts.Logger.Error("cannot revert conflicting edit", "agent", id, "revision", revision, "error", err)
	}
}

// takeBackTime bounds a revert, which runs even if the caller has left.
const takeBackTime = 5 * time.Second
