package cluster

import (
	"context"
	"errors"

	"voicegw/store"
)

// doubt is a session that this node may or may not own, because the store did not answer in time and may list the node
// as the owner of a session that runs nowhere. The node's writers resolve it: they acquire the session again, which
// fences off writes still in flight, and release it. Then its client can resume through any node. Only the writer that
// holds its place uses it.
type doubt struct {
	id   string
	node string // this node
	from uint64 // the epoch of the attempt
	lost *bool  // whether the record said that the owner was lost; nil before it was found
}

// doubts records that a session may be owned by this node. found is its record as it would have been written, or as it
// was written and not released.
func (n *Node) doubts(found store.SessionRecord) {
	if n.o.Self == nil {
		return
	}
	d := &doubt{id: found.ID, node: n.o.Self(), from: found.Epoch}
	if _, is := n.doubtful.LoadOrStore(found.ID, d); is {
		return
	}
	p := &place{n: n, doubt: d, settled: true}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.soon()
}

func (n *Node) inDoubt(id string) bool {
	_, is := n.doubtful.Load(id)
	return is
}

// settle makes one attempt. more requests another one; the error wraps store.ErrUnavailable or has been handled.
func (n *Node) settle(ctx context.Context, d *doubt) (more bool, err error) {
	found, err := n.o.Directory.Find(ctx, d.id)
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return true, err
	case err != nil, found.State == store.SessionOver, found.Node != d.node && found.Epoch != d.from,
		found.Node == d.node && found.State == store.SessionMoving:
		return false, nil // ended, released or owned by another node
	}
	if d.lost == nil {
		lost := found.Lost || found.Node != d.node && found.State != store.SessionMoving
		d.lost = &lost
	}
	owned, err := n.o.Directory.Take(ctx, found)
	if err == nil {
		err = owned.Update(ctx, func(r *store.SessionRecord) { r.State, r.Lost = store.SessionMoving, *d.lost })
	}
	switch {
	case err == nil:
		n.o.Logger.Info("session with unclear owner released", "session_id", d.id, "epoch", owned.Record().Epoch)
		return false, nil
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrUnavailable):
		return true, err
	}
	n.o.Logger.Error("session may be lost: its owner is unknown", "session_id", d.id, "error", err)
	return false, nil
}
