// Package cluster lets a client reach its session through any node: a node that doesn't run the session relays the
// client's bytes, unchanged, to the node that does.
//
// Nodes communicate over HTTP at internal addresses that clients need not reach. Each request is signed with a shared
// secret that is never sent. Requests are readable on the network unless the addresses use https.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"voicegw/protocol"
	"voicegw/session"
	"voicegw/store"
)

// Directory maps sessions to nodes; *store.Directory implements it.
type Directory interface {
	Enter(ctx context.Context, r store.SessionRecord) (*store.Owned, error)
	Find(ctx context.Context, id string) (store.SessionRecord, error)
	Take(ctx context.Context, found store.SessionRecord) (*store.Owned, error)
	List(ctx context.Context) ([]store.SessionRecord, error)
}

// Nodes knows the other nodes; *store.Nodes implements it.
type Nodes interface {
	Find(ctx context.Context, id string) (store.Node, error)
	Gone(ctx context.Context, id string) (bool, error)
}

// NodeOptions configure a Node. All but Self and Peers are required.
type NodeOptions struct {
	Directory   Directory
	Nodes       Nodes
	Checkpoints Checkpoints
	// Self returns this node's ID. If nil, all sessions belong to other nodes.
	Self func() string
	// Peers connects to other nodes. If nil, clients are not relayed, but sessions of dead nodes are still taken over.
	Peers  *Peers
	Logger *slog.Logger
}

// Node is this process as a member of the cluster, or as the successor of a dead process. It implements session.Cluster.
// It may be used concurrently.
type Node struct {
	// Immutable. keepTime limits the end of a release or takeover whose own time is over.
	o        NodeOptions
	keepTime time.Duration

	writes   writes
	doubtful sync.Map // unresolved doubts by session
}

// NewNode returns a Node.
func NewNode(o NodeOptions) *Node {
	return &Node{o: o, keepTime: 3 * time.Second, writes: writes{closing: make(chan struct{})}}
}

// Enter implements session.Cluster. Until the record is written, the client can resume only on this node.
func (n *Node) Enter(r store.SessionRecord) session.Place {
	p := n.newPlace(r, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.soon()
	return p
}

const (
	findTime = 5 * time.Second
	ownTime  = 10 * time.Second
)

// Carry implements session.Cluster.
func (n *Node) Carry(ctx context.Context, v session.Visitor, c session.Client) (carried bool) {
	conn, ok := c.(*protocol.Conn)
	if !ok || n.o.Peers == nil {
		return false
	}
	relay, err := n.reach(ctx, v, conn)
	id := v.Start.Resume.SessionID
	switch {
	case errors.Is(err, store.ErrUnknown), errors.Is(err, errClientGone):
		return false
	case err != nil:
		n.o.Logger.Warn("cannot relay client to its session", "session_id", id, "addr", v.Addr.String(), "error", err)
		return false
	}
	began := time.Now()
	stream, unread := conn.Release()
	up, down := relay.Run(ctx, stream, unread)
	n.o.Logger.Info("client relayed to its session", "session_id", id, "addr", v.Addr.String(), "node", relay.node,
		"duration_ms", time.Since(began).Milliseconds(), "up_bytes", up, "down_bytes", down)
	return true
}

var errClientGone = errors.New("cluster: the client is gone")

func (n *Node) reach(ctx context.Context, v session.Visitor, conn *protocol.Conn) (*Relay, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	r, err := n.o.Directory.Find(ctx, v.Start.Resume.SessionID)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the store
	}
	if r.State == store.SessionOver || r.State == store.SessionMoving || n.o.Self != nil && r.Node == n.o.Self() {
		return nil, store.ErrUnknown // no other node runs it
	}
	node, err := n.o.Nodes.Find(ctx, r.Node)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the store
	}
	start, err := protocol.EncodeClient(v.Start)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the message
	}
	if conn.Gone() {
		return nil, errClientGone // the owner would treat the dead connection as the client's newest
	}
	relay, err := n.o.Peers.Dial(ctx, node.URL, Hello{
		SessionID: r.ID, Start: start, Addr: v.Addr, Origin: v.Origin, Anonymous: v.Anonymous.String(),
		Principal: wirePrincipal(v.Principal),
	})
	if err != nil {
		return nil, err
	}
	if conn.Gone() {
		return nil, errors.Join(errClientGone, relay.Close())
	}
	relay.node = node.ID
	return relay, nil
}

// Take implements session.Cluster.
func (n *Node) Take(ctx context.Context, v session.Visitor) (*session.Taken, error) {
	if n.inDoubt(v.Start.Resume.SessionID) {
		return nil, session.ErrElsewhere // still unresolved; retry
	}
	found, err := n.orphan(ctx, v)
	if err != nil {
		return nil, err
	}
	return n.own(ctx, found)
}

// orphan returns the record of the visitor's session if no node runs it. The errors are those of Take.
func (n *Node) orphan(ctx context.Context, v session.Visitor) (store.SessionRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	found, err := n.o.Directory.Find(ctx, v.Start.Resume.SessionID)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return found, session.ErrNoSession
	case err != nil:
		return found, err //nolint:wrapcheck // it names the store
	case found.State == store.SessionOver:
		return found, session.ErrNoSession
	}
	if err := v.Opens(found); err != nil {
		return found, err //nolint:wrapcheck // it is the same error
	}
	if found.State == store.SessionMoving {
		return found, nil
	}
	if n.o.Self != nil && found.Node == n.o.Self() {
		return found, session.ErrNoSession // it ran here and has ended
	}
	switch gone, err := n.o.Nodes.Gone(ctx, found.Node); {
	case err != nil:
		return found, err //nolint:wrapcheck // it names the store
	case !gone:
		return found, session.ErrElsewhere
	}
	return found, nil
}

// own makes this node the owner of a session that no node runs. It has more time than the search: a takeover that fails
// must be undone and starts anew, so with too little time and a slow store none would succeed.
func (n *Node) own(ctx context.Context, found store.SessionRecord) (*session.Taken, error) {
	ctx, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	owned, err := n.o.Directory.Take(ctx, found)
	switch {
	case errors.Is(err, store.ErrFenced):
		return nil, session.ErrElsewhere
	case errors.Is(err, store.ErrUnknown):
		return nil, session.ErrNoSession
	case errors.Is(err, store.ErrUnavailable):
		n.doubts(found)
		return nil, err //nolint:wrapcheck // it names the store
	case err != nil:
		return nil, err //nolint:wrapcheck // it names the store
	}
	p := n.newPlace(store.SessionRecord{}, owned)
	taken := &session.Taken{Place: p, Record: owned.Record()}
	if taken.Checkpoint, err = n.o.Checkpoints.Load(ctx, found.ID); err == nil {
		// The new epoch stops the previous owner from writing another checkpoint.
		err = n.o.Checkpoints.Save(ctx, p.ours(taken.Checkpoint))
	}
	switch {
	case err == nil, errors.Is(err, store.ErrUnknown):
	case errors.Is(err, store.ErrFenced):
		return nil, session.ErrElsewhere
	case errors.Is(err, store.ErrCorrupt):
		n.o.Logger.Error("session continues without its checkpoint, which is unreadable", "session_id", found.ID, "error", err)
	default:
		more, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.keepTime)
		defer cancel()
		return nil, errors.Join(err, p.Return(more))
	}
	return taken, nil
}

// Visitor returns the client described by the other node.
func (h Hello) Visitor() session.Visitor {
	p, _ := h.Principal.parse() // parseHello has validated it
	return session.Visitor{Addr: h.Addr, Origin: h.Origin, Anonymous: h.User(), Principal: p}
}

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
	if n.inDoubt(found.ID) {
		return nil, session.ErrElsewhere // still unresolved; retry
	}
	return n.own(ctx, found)
}
