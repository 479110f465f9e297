package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"voicegw/internal/strict"
	"voicegw/store"
)

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
