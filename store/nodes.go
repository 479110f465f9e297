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
	// nodeLife is how long a node counts as alive after its last sign, unless it is known earlier
	// that it is gone.
	nodeLife = 6 * time.Second
	// nodeEvery is how often a node gives that sign.
	nodeEvery = 2 * time.Second
	// nodeFence is after how much time without an acknowledged sign a node must assume that
	// others take its sessions. It is shorter than nodeLife, because clocks differ.
	nodeFence = nodeLife - nodeLife/fencePart
	// askWait bounds the wait for a node's answer, and askPause is the time before a node that
	// did not answer is asked once more: it may be connecting to another server of the cluster.
	askWait  = time.Second
	askPause = 300 * time.Millisecond
)

// Node is a gateway process that shares the store.
type Node struct {
	// ID is drawn at random for each process.
	ID string `json:"id"`
	// URL is where other nodes reach this one, such as "https://10.0.0.7:8443"; empty if they
	// cannot.
	URL string `json:"url,omitempty"`
	// Version is the version of the program.
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	// Draining says that the node takes no new sessions because it is about to end.
	Draining bool `json:"draining,omitempty"`
	// Sessions is how many voice sessions it runs.
	Sessions int `json:"sessions"`
	// Answers says that the node answers when it is asked over the store's connection, so that a
	// missing answer shows at once that it is gone.
	Answers bool `json:"answers,omitempty"`
}

// storedNode is a Node in the bucket.
type storedNode struct {
	V int `json:"v"`
	Node
}

// Nodes says which gateways share the store. Its methods may be used concurrently.
type Nodes struct {
	// Fixed after openNodes.
	bucket *bucket
}

func (s *Store) openNodes(ctx context.Context) (*Nodes, error) {
	b, err := s.openPassing(ctx, "nodes", "voicegw: the gateways that share this store")
	return &Nodes{bucket: b}, err
}

// subject is where a node is asked.
func (n *Nodes) subject(id string) string { return n.bucket.store.o.Prefix + ".node." + id }

// Join makes this process a node; its ID, Started, Answers and Sessions are set here. The node gives
// a sign of life every 2 s, until Membership.Leave or Store.Close. running is asked each time how
// many voice sessions it runs; it must not wait, and nil means none. Only one Join of a Store succeeds: the
// next one is ErrUsed. The other errors wrap ErrUnavailable, or say what is wrong with the URL.
func (n *Nodes) Join(ctx context.Context, is Node, running func() int) (*Membership, error) {
	if u, err := url.Parse(is.URL); is.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("store: the address of a node for other nodes must be a URL such as https://10.0.0.7:8443")
	}
	is.ID, is.Started = "node-"+strings.ToLower(rand.Text()), time.Now().UTC()
	if running == nil {
		running = func() int { return 0 }
	}
	m := &Membership{nodes: n, running: running, wake: make(chan struct{}, 1), stop: make(chan struct{}), over: make(chan struct{}), is: is, connected: true}
	if !n.bucket.store.member.CompareAndSwap(nil, m) {
		return nil, fmt.Errorf("%w: this process is a node already", ErrUsed)
	}
	if err := m.begin(ctx); err != nil {
		n.bucket.store.member.Store(nil)
		return nil, err
	}
	return m, nil
}

// own returns the id of this process's node; empty before Join.
func (n *Nodes) own() string {
	if m := n.bucket.store.member.Load(); m != nil {
		return m.id()
	}
	return ""
}

// List returns the nodes that are alive or were until a moment ago, by the time of their start. A
// record that cannot be read is logged and left out. In a cluster of NATS servers the list may lack what
// was written a moment ago. The error wraps ErrUnavailable.
func (n *Nodes) List(ctx context.Context) ([]Node, error) {
	var all []Node
	err := n.bucket.each(ctx, "reading the nodes", func(_ string, data []byte) {
		if is, err := decodeNode(data); err == nil {
			all = append(all, is)
		} else {
			n.bucket.store.log.Warn("store_node_unreadable", "error", err)
		}
	})
	slices.SortFunc(all, func(a, b Node) int { return a.Started.Compare(b.Started) })
	return all, err
}

// Find returns a node. ErrUnknown: it is gone. The other errors wrap ErrUnavailable, ErrVersion or
// ErrCorrupt.
func (n *Nodes) Find(ctx context.Context, id string) (Node, error) {
	h, err := n.bucket.get(ctx, keyOf(id))
	if err != nil {
		return Node{}, err
	}
	return decodeNode(h.data)
}

// Gone says whether a node has ended, however it ended. It asks the node itself, so that the death
// of a process is known at once; a node that cannot be asked, or whose machine is gone, counts as
// alive until its life of 6 s is over. A node that is wrongly taken for gone, because it has lost
// its connection to the store, learns from the fences what others have taken from it. An empty id
// is never gone. Nobody is for 6 s after this process could not reach the store, because then the
// others may not have reached it either. The error wraps ErrUnavailable.
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
		return false, nil // it has a life, and nothing else is known of it
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

// justBack reports whether this process could not reach the store until a moment ago: other nodes may
// still be on their way back, and their signs of life have lapsed meanwhile.
func (n *Nodes) justBack() bool {
	m := n.bucket.store.member.Load()
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.back.IsZero() && time.Since(m.back) < nodeLife
}

// answers asks a node for a sign of life. It is false only if nobody is there who could answer:
// an answer that is late says nothing.
func (n *Nodes) answers(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	_, err := n.bucket.store.conn.RequestWithContext(ctx, n.subject(id), nil)
	return !errors.Is(err, nats.ErrNoResponders)
}

// taken tells a node that one of its sessions was taken. The message may get lost: the node learns
// it from its next write at the latest.
func (n *Nodes) taken(id, key string) {
	if id != "" && id != n.own() {
		_ = n.bucket.store.conn.Publish(n.subject(id), []byte(key)) // what it says is in the store
	}
}

// decodeNode reads a record of the bucket.
func decodeNode(data []byte) (Node, error) {
	var r storedNode
	if err := decodeVersioned(data, &r); err != nil {
		return Node{}, err
	}
	if r.ID == "" {
		return Node{}, fmt.Errorf("%w: a node without an id", ErrCorrupt)
	}
	return r.Node, nil
}

// Membership is this process's place among the nodes. Its methods may be used concurrently.
type Membership struct {
	// Fixed after Join.
	nodes   *Nodes
	running func() int
	sub     *nats.Subscription
	wake    chan struct{} // holds a note that there is something to do; never closed
	stop    chan struct{} // closed by Leave
	over    chan struct{} // closed by keep when it returns

	leaving sync.Once

	mu        sync.Mutex // guards the following fields
	is        Node
	asked     time.Time // when the last acknowledged sign of life was sent
	connected bool
	// absences counts how often others may have taken this node for gone.
	absences uint64
	back     time.Time // when the last absence was over; zero without one

	// revision is owned by begin and then by keep.
	revision uint64
}

// id returns the node's id.
func (m *Membership) id() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.is.ID
}

// Node returns what the other nodes know of this one.
func (m *Membership) Node() Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.is
}

// Drain tells the other nodes that this one is about to end. It does not wait for them.
func (m *Membership) Drain() {
	m.mu.Lock()
	m.is.Draining = true
	m.mu.Unlock()
	m.poke()
}

// fenced says that other nodes may take this one for gone and take its sessions, because it has
// lost its connection to the store or could not write for too long. It ends by itself when the
// store can be reached again; what was taken meanwhile is told by [Owned.WhenLost]. mu is held.
func (m *Membership) fenced() bool { return !m.connected || time.Since(m.asked) >= nodeFence }

// absent returns how often the node was absent, and whether it is.
func (m *Membership) absent() (times uint64, now bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.absences, m.fenced()
}

// begin gives the first sign of life and starts keep.
func (m *Membership) begin(ctx context.Context) error {
	s := m.nodes.bucket.store
	sub, err := s.conn.Subscribe(m.nodes.subject(m.is.ID), m.heard)
	if err != nil {
		return classed(ctx, err)
	}
	m.sub = sub
	// An account may forbid the subject. Nobody may take silence for death then.
	bounded, cancel := context.WithTimeout(ctx, askWait)
	_, err = s.conn.RequestWithContext(bounded, m.nodes.subject(m.is.ID), nil)
	cancel()
	m.is.Answers = err == nil
	if err != nil {
		s.log.Warn("store_node_is_not_heard", "error", err, "means", "if this process is killed, other nodes notice it 6 s later; allow the store's user to publish and subscribe to "+m.nodes.subject("*"))
	}
	if err := m.sign(ctx); err != nil {
		return errors.Join(err, sub.Unsubscribe())
	}
	if !s.start(m.keep) {
		return errors.Join(errClosed, sub.Unsubscribe())
	}
	return nil
}

// heard takes a message to this node: a question whether it is there, or the key of a session that
// was taken.
func (m *Membership) heard(msg *nats.Msg) {
	if msg.Reply != "" {
		_ = msg.Respond(nil) // the node that asks waits for at most askWait
		return
	}
	m.nodes.bucket.store.directory.doubt(string(msg.Data))
}

func (m *Membership) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// lost notes that the connection to the store is lost, and found that it is there again.
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
	m.poke()
}

// sign gives a sign of life.
func (m *Membership) sign(ctx context.Context) error {
	running := m.running()
	m.mu.Lock()
	m.is.Sessions = running
	record := storedNode{V: recordVersion, Node: m.is}
	m.mu.Unlock()
	data, err := encode(record)
	if err != nil {
		return err
	}
	b, key, asked := m.nodes.bucket, keyOf(record.ID), time.Now()
	revision, err := b.put(ctx, key, data, newMark(), m.revision, nodeLife)
	if errors.Is(err, errConflict) {
		// The record's life was over, or an acknowledgement was lost: nobody else writes it.
		h, got := b.get(ctx, key)
		if got != nil && !errors.Is(got, errNone) {
			return got
		}
		revision, err = b.put(ctx, key, data, newMark(), h.revision, nodeLife)
	}
	if err != nil {
		return fmt.Errorf("store: a node's sign of life: %w", err)
	}
	m.revision = revision
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asked.IsZero() && time.Since(m.asked) >= nodeFence {
		m.absences++
		m.back = time.Now()
	}
	m.asked = asked
	return nil
}

// keep gives signs of life, and checks which sessions were taken, until Leave or Store.Close.
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
		s.directory.check(ctx, absences)
	}
}

// Leave ends the node: the others know it at once. It waits for at most Options.Wait, and may be
// called more than once.
func (m *Membership) Leave() {
	m.leaving.Do(func() {
		close(m.stop)
		<-m.over
		s := m.nodes.bucket.store
		_ = m.sub.Unsubscribe() // it fails only if the connection is closed
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Wait)
		defer cancel()
		if _, err := m.nodes.bucket.remove(ctx, keyOf(m.id()), m.revision); err != nil && !errors.Is(err, errClosed) {
			s.log.Warn("store_node_not_removed", "error", err)
		}
	})
}
