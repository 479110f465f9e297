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

// Directory says which node runs which session; *store.Directory implements it.
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
	// Self returns the id of this node. Nil takes every session for one of other nodes.
	Self func() string
	// Peers reaches other nodes. Without it, no client is carried to another node, and sessions
	// whose node is gone are taken over all the same.
	Peers  *Peers
	Logger *slog.Logger
}

// Node is this process as one of several, or as the next start of one that is gone: it implements
// session.Cluster. It may be used concurrently.
type Node struct {
	o        NodeOptions   // fixed
	keepTime time.Duration // how long place.keep may take; fixed
	writes   writes
	doubtful sync.Map // the doubts that are not settled, by session
}

// NewNode returns a Node.
func NewNode(o NodeOptions) *Node {
	return &Node{o: o, keepTime: 3 * time.Second, writes: writes{closing: make(chan struct{})}}
}

// Enter implements session.Cluster. Until the record is written, the session's client can come back
// to this node only.
func (n *Node) Enter(r store.SessionRecord) session.Place {
	p := n.newPlace(r, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.soon()
	return p
}

// findTime bounds how long a client waits until the node of its session is found.
const findTime = 5 * time.Second

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
		n.o.Logger.Warn("a client is not carried to its session", "session_id", id, "addr", v.Addr.String(), "error", err)
		return false
	}
	began := time.Now()
	stream, unread := conn.Release()
	up, down := relay.Run(ctx, Stream{Conn: stream, Unread: unread})
	n.o.Logger.Info("a client was carried to its session", "session_id", id, "addr", v.Addr.String(), "node", relay.node,
		"duration_ms", time.Since(began).Milliseconds(), "up_bytes", up, "down_bytes", down)
	return true
}

var errClientGone = errors.New("cluster: the client is gone")

// reach connects with the node that runs a client's session.
func (n *Node) reach(ctx context.Context, v session.Visitor, conn *protocol.Conn) (*Relay, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	r, err := n.o.Directory.Find(ctx, v.Start.Resume.SessionID)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the store
	}
	if r.State == store.SessionOver || r.State == store.SessionMoving {
		return nil, store.ErrUnknown // nobody runs it
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
		return nil, errClientGone // the owner would take it for the newest connection of the client
	}
	relay, err := n.o.Peers.Dial(ctx, node.URL, Hello{
		SessionID: r.ID, Start: start, Addr: v.Addr, Origin: v.Origin, Anonymous: v.Anonymous.String(), Principal: tell(v.Principal),
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
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if n.inDoubt(v.Start.Resume.SessionID) {
		return nil, session.ErrElsewhere // in a moment it is known
	}
	found, err := n.o.Directory.Find(ctx, v.Start.Resume.SessionID)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return nil, session.ErrNoSession
	case err != nil:
		return nil, err //nolint:wrapcheck // it names the store
	case found.State == store.SessionOver:
		return nil, session.ErrNoSession
	}
	if err := v.Opens(found, time.Now()); err != nil {
		return nil, err //nolint:wrapcheck // it is the same error
	}
	if found.State != store.SessionMoving {
		if n.o.Self != nil && found.Node == n.o.Self() {
			return nil, session.ErrNoSession // it ran here, and is over
		}
		switch gone, err := n.o.Nodes.Gone(ctx, found.Node); {
		case err != nil:
			return nil, err //nolint:wrapcheck // it names the store
		case !gone:
			return nil, session.ErrElsewhere
		}
	}
	return n.own(ctx, found)
}

// own makes this node the owner of a session that no node runs.
func (n *Node) own(ctx context.Context, found store.SessionRecord) (*session.Taken, error) {
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
		// At the new epoch, which keeps the owner of before from writing another one.
		err = n.o.Checkpoints.Save(ctx, p.ours(taken.Checkpoint))
	}
	switch {
	case err == nil, errors.Is(err, store.ErrUnknown):
	case errors.Is(err, store.ErrFenced):
		return nil, session.ErrElsewhere
	case errors.Is(err, store.ErrCorrupt):
		n.o.Logger.Error("a session goes on without its checkpoint, which cannot be read", "session_id", found.ID, "error", err)
	default:
		return nil, errors.Join(err, p.Return(ctx))
	}
	return taken, nil
}

// Visitor returns what the other node has said of a client.
func (h Hello) Visitor() session.Visitor {
	p, _ := h.Principal.told() // parseHello has checked it
	return session.Visitor{Addr: h.Addr, Origin: h.Origin, Anonymous: h.User(), Principal: p}
}
