package cluster

import (
	"context"
	"errors"

	"voicegw/store"
)

// doubt is a session of which this node does not know whether it has taken it: the store has not answered in time,
// and may have the node as the owner of a session that runs nowhere. It is settled by the node's writers: they take
// the session once more, which fences what may still be on its way, and give it up. Then its client can come
// back through any node. Only the writer that has its place uses it.
type doubt struct {
	id   string
	node string // this node
	from uint64 // the epoch at which it was to be taken
	lost *bool  // what the record says of the owner of before; nil before it was found
}

// doubts notes that a session may have been taken: found is its record as it was to be taken, or as it was taken
// and could not be given back.
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

// inDoubt reports whether the node does not know whether it has taken a session.
func (n *Node) inDoubt(id string) bool {
	_, is := n.doubtful.Load(id)
	return is
}

// settle makes one attempt. more reports that another one is needed; the error wraps store.ErrUnavailable, or
// was dealt with.
func (n *Node) settle(ctx context.Context, d *doubt) (more bool, err error) {
	found, err := n.o.Directory.Find(ctx, d.id)
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return true, err
	case err != nil, found.State == store.SessionOver, found.Node != d.node && found.Epoch != d.from,
		found.Node == d.node && found.State == store.SessionMoving:
		return false, nil // it is over, or anybody may take it, or somebody has
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
		n.o.Logger.Info("a session that was in doubt can be taken again", "session_id", d.id, "epoch", owned.Record().Epoch)
		return false, nil
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrUnavailable):
		return true, err
	}
	n.o.Logger.Error("a session may be lost: it is not known who has it", "session_id", d.id, "error", err)
	return false, nil
}
