package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"voicegw/internal/strict"
	"voicegw/store"
)

// Two nodes may check at the same moment, and then write: one deletes an agent, the other makes another
// one switch to it. So each looks again once it knows everything that was written before its own write.
// The store has one order of all writes, and the later of the two is taken back.

// settlePut takes an edit back if an agent that it switches to was deleted before it was written. was is
// what it has replaced.
func (c *Catalog) settlePut(ctx context.Context, edit store.AgentEdit, was *Entry) error {
	d := Read(edit.ID, edit.Document)
	var risky []string // those that only an edit makes
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
		// Whoever has deleted it later has seen this edit, and takes the deletion back.
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
		r.Problem(nil, "switch_to names the agent %q, which was deleted at the same moment", id)
	}
	return r.Err()
}

// settleDelete takes a deletion back if another agent was made to switch to the deleted one before.
func (c *Catalog) settleDelete(ctx context.Context, was *Entry, revision uint64) error {
	if !c.follows(ctx, was.ID, revision) {
		return nil
	}
	var by []string
	for _, e := range c.Snapshot().sorted {
		// Whoever has written it later has seen the deletion, and takes that edit back.
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

// follows waits until this node has everything that was written up to a revision. If the store is lost just
// then, two changes that contradict each other both stay, and the agent is shown with a problem.
func (c *Catalog) follows(ctx context.Context, id string, revision uint64) bool {
	err := c.opts.Edits.Follow(ctx, revision)
	if err != nil {
		c.opts.Logger.Warn("an edit is written, and could not be compared with what others have written at the same moment", "agent", id, "revision", revision, "error", err)
	}
	return err == nil
}

// takeBack writes what an agent was before the edit of a revision, unless somebody has changed it since.
// revision is 0 if it was deleted; was is nil if it did not exist.
func (c *Catalog) takeBack(ctx context.Context, id string, revision uint64, was *Entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	err := func() error {
		if was == nil || was.Source != SourceStore {
			_, err := c.opts.Edits.Remove(ctx, id, revision)
			return err
		}
		_, err := c.opts.Edits.Save(ctx, store.AgentEdit{ID: id, Document: was.Document.Encoded(), At: was.UpdatedAt, By: was.UpdatedBy}, revision)
		return err
	}()
	if err != nil && !errors.Is(err, store.ErrChanged) {
		c.opts.Logger.Error("an edit that contradicts another one cannot be taken back", "agent", id, "revision", revision, "error", err)
	}
}

// takeBackTime bounds how long taking an edit back lasts, also for a caller that has left.
const takeBackTime = 5 * time.Second
