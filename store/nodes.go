package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// nodeLife is how long a node counts as alive after its last heartbeat, unless its death is known earlier.
	nodeLife = 6 * time.Second
	// nodeEvery is the heartbeat interval.
	nodeEvery = 2 * time.Second
	// nodeFence is the time without an acknowledged heartbeat after which a node must assume that others take its
	// sessions. It is shorter than nodeLife, because clocks differ.
	nodeFence = nodeLife - nodeLife/fencePart
	// askWait bounds the wait for a node's answer, and askPause is the pause before asking again, as the node may be
	// reconnecting to another server of the cluster.
	askWait  = time.Second
	askPause = 300 * time.Millisecond
)

// Node is a gateway process that shares the store.
type Node struct {
	// ID is random for each process.
	ID string `json:"id"`
	// URL is the node's address for other nodes, such as "https://10.0.0.7:8443"; empty if unreachable.
	URL string `json:"url,omitempty"`
	// Version is the program's version.
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	// Draining means that the node accepts no new sessions because it is shutting down.
	Draining bool `json:"draining,omitempty"`
	// Sessions is the number of its voice sessions.
	Sessions int `json:"sessions"`
	// Answers means that the node answers pings over the store's connection, so that a missing answer reveals its death
	// at once.
	Answers bool `json:"answers,omitempty"`
}

// Nodes lists the gateways that share the store.
type Nodes struct {
	// Immutable.
	bucket *bucket
}

func (n *Nodes) subject(id string) string { return prefix + ".node." + id }

// Join makes this process a node, setting its ID, Started, Answers and Sessions. The node sends a heartbeat every 2 s
// until Membership.Leave or Store.Close. running returns the number of voice sessions; it must not block and may be nil.
// A second Join returns ErrUsed. The other errors wrap ErrUnavailable or describe an invalid URL.
func (n *Nodes) Join(ctx context.Context, is Node, running func() int) (*Membership, error) {
	if u, err := url.Parse(is.URL); is.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("store: a node's URL must be like https://10.0.0.7:8443")
	}
	is.ID, is.Started = "node-"+strings.ToLower(rand.Text()), time.Now().UTC()
	if running == nil {
		running = func() int { return 0 }
	}
	m := &Membership{nodes: n, running: running, wake: make(chan struct{}, 1), stop: make(chan struct{}),
		over: make(chan struct{}), is: is, connected: true}
	if !n.bucket.store.member.CompareAndSwap(nil, m) {
		return nil, fmt.Errorf("%w: this process is already a node", ErrUsed)
	}
	if err := m.begin(ctx); err != nil {
		n.bucket.store.member.Store(nil)
		return nil, err
	}
	return m, nil
}

func (n *Nodes) own() string {
	if m := n.bucket.store.member.Load(); m != nil {
		return m.Node().ID
	}
	return ""
}

// List returns the nodes alive now or a moment ago, by start time. Unreadable records are logged and left out. In a
// NATS cluster the newest writes may be missing.
func (n *Nodes) List(ctx context.Context) ([]Node, error) {
	all, err := records(ctx, n.bucket, "reading the nodes", "store_node_unreadable", decodeNode)
	slices.SortFunc(all, func(a, b Node) int { return a.Started.Compare(b.Started) })
	return all, err
}

// Find returns a node. ErrUnknown means it is gone. The other errors wrap ErrUnavailable, ErrVersion or ErrCorrupt.
func (n *Nodes) Find(ctx context.Context, id string) (Node, error) {
	is, _, err := read(ctx, n.bucket, keyOf(id), decodeNode)
	return is, err
}

// Gone reports whether a node has ended. It pings the node, so that it notices a process's death at once; a node that
// it can't ping, or whose machine is gone, counts as alive for its 6 s. A live node wrongly reported as gone, because
// it lost its connection, learns of its losses from the fences. An empty ID is never gone. For 6 s after this process
// itself could not reach the store, no node is gone, because others may not have reached it either.
func (n *Nodes) Gone(ctx context.Context, id string) (bool, error) {
	if id == "" || id == n.own() {
		return false, nil
	}
	is, err := n.Find(ctx, id)
	switch {
	case err == nil && !is.Answers:
		return false, nil
	case (err == nil || errors.Is(err, ErrUnknown)) && n.justBack():
		return false, nil
	case errors.Is(err, ErrUnknown):
		return true, nil
	case errors.Is(err, ErrVersion), errors.Is(err, ErrCorrupt):
		return false, nil // it is still within its life, and nothing else is known
	case err != nil:
		return false, err
	case n.answers(ctx, id):
		return false, nil
	}
	select {
	case <-time.After(askPause):
	case <-ctx.Done():
		return false, classed(ctx, ctx.Err())
	}
	return !n.answers(ctx, id), nil
}

// justBack reports whether this process has only just reached the store again: other nodes may still be reconnecting,
// with lapsed heartbeats.
func (n *Nodes) justBack() bool {
	m := n.bucket.store.member.Load()
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.back.IsZero() && time.Since(m.back) < nodeLife
}

// answers pings a node. It is false only if there is no subscriber; a late answer proves nothing.
func (n *Nodes) answers(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	_, err := n.bucket.store.conn.RequestWithContext(ctx, n.subject(id), nil)
	return !errors.Is(err, nats.ErrNoResponders)
}

// taken notifies a node that one of its sessions was taken. If the message is lost, the node learns it at its next
// write.
func (n *Nodes) taken(id, key string) {
	if id != "" && id != n.own() {
		_ = n.bucket.store.conn.Publish(n.subject(id), []byte(key)) // the store has the same information
	}
}

func decodeNode(data []byte) (Node, error) {
	return decodeAs(data, decodeVersioned, "a node without an id", func(n Node) bool { return n.ID != "" })
}

// Membership is this process's registration as a node.
type Membership struct {
	// Immutable after Join.
	nodes   *Nodes
	running func() int
	sub     *nats.Subscription
	wake    chan struct{} // requests work; capacity 1, never closed
	stop    chan struct{} // closed by Leave
	over    chan struct{} // closed when keep returns

	leaving sync.Once

	mu        sync.Mutex // guards the following fields
	is        Node
	asked     time.Time // when the last acknowledged heartbeat was sent
	connected bool
	// absences counts how often others may have considered this node gone.
	absences uint64
	back     time.Time // the end of the last absence; zero without one

	// revision is owned by begin and then by keep.
	revision uint64
}

// Node returns this node's record.
func (m *Membership) Node() Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.is
}

// Drain marks this node as shutting down, without waiting for the write.
func (m *Membership) Drain() {
	m.mu.Lock()
	m.is.Draining = true
	m.mu.Unlock()
	poke(m.wake)
}

// fenced reports whether other nodes may consider this one gone and take its sessions, because it lost its connection to
// the store or couldn't write for too long. It ends when the store is reachable again; [Owned.WhenLost] reports taken
// sessions. mu is held.
func (m *Membership) fenced() bool { return !m.connected || time.Since(m.asked) >= nodeFence }

func (m *Membership) absent() (times uint64, now bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.absences, m.fenced()
}

// begin sends the first heartbeat and starts keep.
func (m *Membership) begin(ctx context.Context) error {
	s := m.nodes.bucket.store
	sub, err := s.conn.Subscribe(m.nodes.subject(m.is.ID), m.heard)
	if err != nil {
		return classed(ctx, err)
	}
	m.sub = sub
	// The account may forbid the subject. Then silence must not count as death.
	bounded, cancel := context.WithTimeout(ctx, askWait)
	_, err = s.conn.RequestWithContext(bounded, m.nodes.subject(m.is.ID), nil)
	cancel()
	m.mu.Lock()
	m.is.Answers = err == nil // work that began before may read the record
	m.mu.Unlock()
	if err != nil {
		s.log.Warn("store_node_is_not_heard", "error", err, "means",
			"other nodes notice this process's death only after 6 s; allow the store's user to publish and subscribe to "+
				m.nodes.subject("*"))
	}
	if err := m.sign(ctx); err != nil {
		return errors.Join(err, sub.Unsubscribe())
	}
	if !s.start(m.keep) {
		return errors.Join(errClosed, sub.Unsubscribe())
	}
	return nil
}

func (m *Membership) heard(msg *nats.Msg) {
	if msg.Reply != "" {
		_ = msg.Respond(nil) // the sender waits at most askWait
		return
	}
	m.nodes.bucket.store.Directory.doubt(string(msg.Data))
}

func (m *Membership) lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected = false
}

func (m *Membership) found() {
	m.mu.Lock()
	m.absences++
	m.connected, m.back = true, time.Now()
	m.mu.Unlock()
	poke(m.wake)
}

func (m *Membership) sign(ctx context.Context) error {
	running := m.running()
	m.mu.Lock()
	m.is.Sessions = running
	record := m.is
	m.mu.Unlock()
	data, err := encodeVersioned(record)
	if err != nil {
		return err
	}
	asked := time.Now()
	w := &write{data: data, ttl: nodeLife}
	h, err := m.nodes.bucket.set(ctx, keyOf(record.ID), w, m.revision, func(held) (*write, error) {
		return w, nil // the record expired or an acknowledgement was lost: only this node writes it
	})
	if err != nil {
		return fmt.Errorf("store: heartbeat: %w", err)
	}
	m.revision = h.revision
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asked.IsZero() && time.Since(m.asked) >= nodeFence {
		m.absences++
		m.back = time.Now()
	}
	m.asked = asked
	return nil
}

// keep sends heartbeats and checks for taken sessions, until Leave or Store.Close.
func (m *Membership) keep() {
	defer close(m.over)
	s := m.nodes.bucket.store
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failed := false
	next := time.NewTimer(nodeEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-m.wake:
		case <-m.stop:
			return
		case <-s.done:
			return
		}
		next.Reset(nodeEvery)
		err := m.sign(ctx)
		if err != nil && !failed {
			s.log.Warn("store_node_not_renewed", "error", err)
		}
		if failed = err != nil; failed {
			next.Reset(nodeLife / againPart)
			continue
		}
		absences, _ := m.absent()
		s.Directory.check(ctx, absences)
	}
}

// Leave removes the node, which others notice at once. It takes at most Options.Wait and may be called more than once.
func (m *Membership) Leave() {
	m.leaving.Do(func() {
		close(m.stop)
		<-m.over
		s := m.nodes.bucket.store
		_ = m.sub.Unsubscribe() // fails only on a closed connection
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Wait)
		defer cancel()
		if _, err := m.nodes.bucket.remove(ctx, keyOf(m.Node().ID), m.revision); err != nil && !errors.Is(err, errClosed) {
			s.log.Warn("store_node_not_removed", "error", err)
		}
	})
}
