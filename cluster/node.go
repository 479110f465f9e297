package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"voicegw/protocol"
	"voicegw/session"
	"voicegw/store"
)

// Directory says which node runs which session; *store.Directory implements it.
type Directory interface {
	Enter(ctx context.Context, r store.SessionRecord) (*store.Owned, error)
	Find(ctx context.Context, id string) (store.SessionRecord, error)
}

// Nodes knows the other nodes; *store.Nodes implements it.
type Nodes interface {
	Find(ctx context.Context, id string) (store.Node, error)
}

// Node is this process as one of several: it implements session.Cluster. It may be used
// concurrently.
type Node struct {
	// Fixed after NewNode.
	directory Directory
	nodes     Nodes
	peers     *Peers
	logger    *slog.Logger

	writes sync.WaitGroup // the goroutines that write to the directory
}

// NewNode returns a Node that finds sessions in the directory, and reaches their nodes by peers.
func NewNode(d Directory, n Nodes, p *Peers, logger *slog.Logger) *Node {
	return &Node{directory: d, nodes: n, peers: p, logger: logger}
}

// writeTime bounds how long the writing of a record is tried again, while the session runs.
const writeTime = time.Minute

// Enter implements session.Cluster. A session begins while the store is away as well; until its
// record is written, its client can come back to this node only.
func (n *Node) Enter(e session.Entry) (leave func()) {
	ctx, left := context.WithCancel(context.Background())
	entered := make(chan *store.Owned, 1) // nil if the record was not written
	n.writes.Go(func() {
		owned, err := backoff.Retry(ctx, func() (*store.Owned, error) {
			o, err := n.directory.Enter(ctx, record(e))
			if err != nil && !errors.Is(err, store.ErrUnavailable) {
				return nil, backoff.Permanent(err)
			}
			return o, err
		}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(writeTime))
		if err != nil && ctx.Err() == nil {
			n.logger.Warn("a session is not in the directory: its client can come back to this node only", "session_id", e.ID, "error", err)
		}
		entered <- owned
	})
	return func() {
		n.writes.Go(func() {
			left()
			owned := <-entered
			if owned == nil {
				return
			}
			if err := owned.End(context.Background()); err != nil && !errors.Is(err, store.ErrFenced) {
				n.logger.Warn("the directory still has a session that is over", "session_id", e.ID, "error", err)
			}
		})
	}
}

func record(e session.Entry) store.SessionRecord {
	return store.SessionRecord{
		ID: e.ID, User: e.User.String(), Conversation: e.ConversationID, Provider: e.Provider, Model: e.Model, Agent: e.Agent,
		StartedAt: e.StartedAt, EndsAt: e.EndsAt, Origin: e.Origin, ToolsVersion: e.ToolsVersion,
	}
}

// Close waits for the writes to the directory. No session may begin after it.
func (n *Node) Close() { n.writes.Wait() }

// findTime bounds how long a client waits until the node of its session is found.
const findTime = 5 * time.Second

// Carry implements session.Cluster.
func (n *Node) Carry(ctx context.Context, v session.Visitor, c session.Client) bool {
	conn, ok := c.(*protocol.Conn)
	if !ok {
		return false
	}
	relay, err := n.reach(ctx, v)
	id := v.Start.Resume.SessionID
	switch {
	case errors.Is(err, store.ErrUnknown):
		return false
	case err != nil:
		n.logger.Warn("a client is not carried to its session", "session_id", id, "addr", v.Addr.String(), "error", err)
		return false
	}
	began := time.Now()
	stream, unread := conn.Release()
	up, down := relay.Run(ctx, Stream{Conn: stream, Unread: unread})
	n.logger.Info("a client was carried to its session", "session_id", id, "addr", v.Addr.String(), "node", relay.node,
		"duration_ms", time.Since(began).Milliseconds(), "up_bytes", up, "down_bytes", down)
	return true
}

// reach connects with the node that runs a client's session.
func (n *Node) reach(ctx context.Context, v session.Visitor) (*Relay, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	r, err := n.directory.Find(ctx, v.Start.Resume.SessionID)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the store
	}
	if r.State == store.SessionOver {
		return nil, store.ErrUnknown
	}
	node, err := n.nodes.Find(ctx, r.Node)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the store
	}
	start, err := protocol.EncodeClient(v.Start)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the message
	}
	relay, err := n.peers.Dial(ctx, node.URL, Hello{
		SessionID: r.ID, Start: start, Addr: v.Addr, Origin: v.Origin, Anonymous: v.Anonymous.String(), MayInspect: v.MayInspect,
	})
	if err != nil {
		return nil, err
	}
	relay.node = node.ID
	return relay, nil
}

// Visitor returns what the other node has said of a client.
func (h Hello) Visitor() session.Visitor {
	return session.Visitor{Addr: h.Addr, Origin: h.Origin, Anonymous: h.User(), MayInspect: h.MayInspect}
}
