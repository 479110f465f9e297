package cluster

import (
	"context"

	"voicegw/session"
	"voicegw/store"
)

// Lost implements session.Cluster.
func (n *Node) Lost(ctx context.Context) ([]session.Lost, error) {
	all, err := n.o.Directory.List(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the store
	}
	self := ""
	if n.o.Self != nil {
		self = n.o.Self()
	}
	gone := map[string]bool{}
	var lost []session.Lost
	for _, r := range all {
		is, asked := gone[r.Node]
		switch {
		case n.inDoubt(r.ID):
			continue
		case r.State == store.SessionMoving:
			is = true
		case self != "" && r.Node == self:
			lost = append(lost, session.Lost{Record: r, Ended: true}) // the Manager knows which of them still run
			continue
		case !asked:
			if is, err = n.o.Nodes.Gone(ctx, r.Node); err != nil {
				return nil, err //nolint:wrapcheck // it names the store
			}
			gone[r.Node] = is
		}
		if is {
			lost = append(lost, session.Lost{Record: r})
		}
	}
	return lost, nil
}

// Adopt implements session.Cluster.
func (n *Node) Adopt(ctx context.Context, found store.SessionRecord) (*session.Taken, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if n.inDoubt(found.ID) {
		return nil, session.ErrElsewhere // still unresolved; retry
	}
	return n.own(ctx, found)
}
