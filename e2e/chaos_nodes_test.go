package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"voicegw/gateway"
	"voicegw/internal/audit"
	"voicegw/internal/cluster"
	"voicegw/internal/nonblock"
	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
)

// chaosNode is one run of a gateway, from its start to its death or drain.
type chaosNode struct {
	// Fixed after newNode.
	name      string
	ch        *chaos
	address   string  // for clients
	heard     *cutter // connections opened by clients and other gateways
	cut       *cutter // connections to models
	toStore   *testutil.Proxy
	store     *store.Store
	member    *store.Membership
	elsewhere *cluster.Node
	tools     *registry.Registry
	endTools  func() // ends the connections to services
	audit     *audit.Log
	path      string // of the audit's file
	manage    *session.Manager
	servers   []*http.Server
	serving   sync.WaitGroup

	life    sync.Mutex    // guards the following fields
	idle    *sync.Cond    // signals that doing is 0; its lock is life
	doing   int           // number of running actions that a dead process cannot perform
	killed  bool          // its end has begun, still unannounced
	dead    bool          // it performs no more such actions
	died    time.Time     // end of such actions; zero while it lives
	lag     time.Duration // the store's time for the writes of all its sessions at that moment
	leaving time.Time     // start of the drain, or zero
	left    bool          // drained; it serves no clients
}

// alive performs an action that a dead process could not, unless the node is dead, and reports whether it did. Actions
// may nest: death waits for them, but they never wait for it.
func (n *chaosNode) alive(do func()) bool {
	n.life.Lock()
	if n.dead {
		n.life.Unlock()
		return false
	}
	n.doing++
	n.life.Unlock()
	defer func() {
		n.life.Lock()
		defer n.life.Unlock()
		if n.doing--; n.doing == 0 {
			n.idle.Broadcast()
		}
	}()
	do()
	return true
}

// die makes the node dead.
func (n *chaosNode) die() {
	n.life.Lock()
	defer n.life.Unlock()
	for n.dead = true; n.doing > 0; {
		n.idle.Wait()
	}
	n.died = time.Now()
}

// death returns the time of the kill; zero without one.
func (n *chaosNode) death() time.Time {
	n.life.Lock()
	defer n.life.Unlock()
	return n.died
}

// storeLag returns the store's time for the writes of all its sessions at the kill.
func (n *chaosNode) storeLag() time.Duration {
	n.life.Lock()
	defer n.life.Unlock()
	return n.lag
}

// troubled reports whether the node was killed or drains.
func (n *chaosNode) troubled() bool {
	n.life.Lock()
	defer n.life.Unlock()
	return n.killed || n.dead || !n.leaving.IsZero()
}

// whileAlive is a writer that drops a dead process's output.
type whileAlive struct {
	n  *chaosNode
	to interface{ Write([]byte) (int, error) }
}

func (w whileAlive) Write(p []byte) (written int, err error) {
	if !w.n.alive(func() { written, err = w.to.Write(p) }) {
		return len(p), nil
	}
	return written, err
}

// auditLines is the file of a node's audit.
type auditLines struct {
	whileAlive
	file *audit.File
}

func (l auditLines) Close() error { return l.file.Close() }

// chaosSecret is shared by the gateways.
const chaosSecret = "a-secret-that-all-gateways-have-in-common"

// openNATS starts the shared store. It syncs each write.
func (ch *chaos) openNATS() {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: ch.t.TempDir(), SyncAlways: true, NoSigs: true, NoLog: true})
	if err != nil {
		ch.t.Fatal(err)
	}
	s.Start()
	ch.nats = s
	if !s.ReadyForConnections(testutil.WaitLimit) {
		ch.t.Fatal("the NATS server does not start")
	}
}

// newNode starts a gateway.
func (ch *chaos) newNode() (*chaosNode, error) {
	ch.born++
	n := &chaosNode{name: fmt.Sprint("node ", ch.born), ch: ch, heard: &cutter{}, cut: &cutter{}}
	n.idle = sync.NewCond(&n.life)
	logger := slog.New(slog.NewTextHandler(whileAlive{n, ch.log}, &slog.HandlerOptions{Level: slog.LevelError}))
	if err := n.open(logger); err != nil {
		return nil, fmt.Errorf("starting %s: %w", n.name, err)
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.nodes = append(ch.nodes, n)
	return n, nil
}

// patiently retries operations that a slow store refuses, as a service manager would.
func patiently(do func() error) error {
	for began := time.Now(); ; {
		if err := do(); !errors.Is(err, store.ErrUnavailable) || time.Since(began) > testutil.WaitLimit {
			return err
		}
	}
}

// open creates the parts of a gateway and starts it.
func (n *chaosNode) open(logger *slog.Logger) error {
	ch := n.ch
	var err error
	if n.toStore, err = testutil.Listen("127.0.0.1:0", strings.TrimPrefix(ch.nats.ClientURL(), "nats://")); err != nil {
		return err
	}
	if err = patiently(func() error {
		n.store, err = store.Open(ch.t.Context(), store.Options{URL: "nats://" + n.toStore.Addr(), Logger: logger})
		return err
	}); err != nil {
		return err
	}
	n.path = filepath.Join(ch.dir, fmt.Sprintf("audit-%d.jsonl", ch.born))
	file, err := audit.OpenFile(audit.FileOptions{Path: n.path, Logger: logger})
	if err != nil {
		return err
	}
	n.audit = audit.New(audit.Options{
		Stream: n.store.Audit, Lines: auditLines{whileAlive{n, file}, file}, Arguments: audit.ArgumentsFull, Logger: logger,
	})
	if n.tools, n.endTools, err = ch.world.tools(ch.toolFile, n); err != nil {
		return err
	}
	lives := slog.New(slog.NewJSONHandler(whileAlive{n, ch.lives}, nil))
	clients, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	others, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, clients.Close())
	}
	n.address = clients.Addr().String()
	peers, err := cluster.New(cluster.Options{
		Secret: []byte(chaosSecret),
		Accept: func(h cluster.Hello, c *cluster.Client) { n.manage.Start(n.manage.AdmitCarried(h.Visitor()), c) },
		End:    func(id string) bool { return n.manage.End(id) },
		Holds:  func(id string) bool { return n.manage.Holds(id) },
	})
	if err != nil {
		return err
	}
	n.elsewhere = cluster.NewNode(cluster.NodeOptions{
		Directory: n.store.Directory, Nodes: n.store.Nodes, Checkpoints: n.store.Checkpoints, Logger: lives, Peers: peers,
		Self: func() string { return n.member.Node().ID },
	})
	executor := execute.New(execute.Options{
		Ledger: moodyLedger{n.store.Ledger, ch.moods}, Confirmations: n.store.Confirmations, Life: 3 * time.Second, Grace: 2 * time.Second, Logger: logger,
	})
	if n.manage, err = session.NewManager(session.Options{
		Limits:     session.Limits{ExemptLoopback: true, Held: ch.held},
		Transports: n.transports(), Provider: providers[0], Tools: n.tools.Snapshot, Executor: executor,
		Audit:   func(r audit.Record) { n.alive(func() { ch.lives.audits(r); n.audit.Write(r) }) },
		Cluster: watchedCluster{n.elsewhere, n},
		Logger:  lives,
		Policy: orchestrator.Policy{
			ResumeGrace: chaosGrace, NudgeAfter: 1200 * time.Millisecond, NoAnswerAfter: 3 * time.Second,
		},
	}); err != nil {
		return err
	}
	if err = patiently(func() error {
		n.member, err = n.store.Nodes.Join(ch.t.Context(), store.Node{URL: "http://" + others.Addr().String()}, n.manage.Running)
		return err
	}); err != nil {
		return err
	}
	n.serve(clients, gateway.New(gateway.Options{Sessions: n.manage}))
	n.serve(others, peers.Handler())
	return nil
}

func (n *chaosNode) serve(ln net.Listener, h http.Handler) {
	srv := &http.Server{Handler: h, ConnContext: gateway.ConnContext, ReadHeaderTimeout: time.Minute}
	n.servers = append(n.servers, srv)
	n.serving.Go(func() { _ = srv.Serve(cutListener{gateway.Listen(ln, gateway.NewLoops(nil)), n.heard}) }) // until it is closed
}

// transports connect to the models. A dead node cannot dial.
func (n *chaosNode) transports() map[string]transport.Transport {
	client := nonblock.Client(nil, &nonblock.Loops{})
	reach := client.Transport.(*http.Transport)
	dial := reach.DialContext
	reach.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return n.cut.add(c), nil
	}
	all := map[string]transport.Transport{}
	for _, wire := range chaosWires {
		all[wire.value] = watched{newModelOver(n.ch.t, wire.value, "", secret, n.ch.tap.url, client), n.ch.side, n.ch.links, n}
	}
	return all
}

// kill ends the gateway like SIGKILL: at one moment all visible actions stop and all connections close. The rest is
// cleaned up afterwards.
func (n *chaosNode) kill() {
	sessions := n.manage.Running()
	n.cutOff()
	n.life.Lock()
	n.lag = n.ch.stored.lag(sessions, n.died)
	n.life.Unlock()
	n.ch.links.died(n)
	n.ch.buried.Go(func() {
		n.heard.close()
		n.cut.close()
		_ = n.store.Close() // without a notice to the others
		n.manage.Close()
		n.elsewhere.Close()
		given, up := context.WithCancel(context.Background())
		up()
		n.end(given, func(string, ...any) {}) // a dead process writes no audit and no log
	})
}

// cutOff closes all connections and, in between, makes the node dead. Connections from clients close first: a dead
// process must not report that its connection to a model broke.
func (n *chaosNode) cutOff() {
	n.life.Lock()
	n.killed = true
	n.life.Unlock()
	for _, srv := range n.servers {
		_ = srv.Close() // its listener
	}
	n.heard.now()
	n.die()
	if n.toStore != nil {
		_ = n.toStore.Close() // at once: it must not record the loss of its connections
	}
	n.cut.now()
}

// drain ends the gateway like SIGTERM: its sessions move.
func (n *chaosNode) drain(within time.Duration) {
	n.life.Lock()
	n.leaving = time.Now()
	n.life.Unlock()
	n.member.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := n.manage.Drain(ctx); err != nil {
		n.ch.broke("draining %s: %v", n.name, err)
	}
	moved := n.manage.Census().Moved
	n.ch.mu.Lock()
	n.ch.moved += moved
	n.ch.mu.Unlock()
	n.retire()
	n.shut()
}

// retire closes the servers and the sessions' resources once no session is left.
func (n *chaosNode) retire() {
	n.life.Lock()
	n.left = true
	n.life.Unlock()
	for _, srv := range n.servers {
		_ = srv.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	n.end(ctx, n.ch.broke)
}

// shut leaves the cluster and the store.
func (n *chaosNode) shut() {
	n.elsewhere.Close()
	n.member.Leave()
	if err := n.store.Close(); err != nil {
		n.ch.broke("closing the store of %s: %v", n.name, err)
	}
	n.heard.close()
	n.cut.close()
	_ = n.toStore.Close()
}

// end closes the tools and the audit, which gives up when writing ends.
func (n *chaosNode) end(writing context.Context, broke func(format string, args ...any)) {
	n.serving.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	if err := n.tools.Wait(ctx); err != nil {
		broke("handlers of %s are still running: %v", n.name, err)
	}
	n.endTools()
	if err := n.audit.Close(writing); err != nil {
		broke("closing the audit of %s: %v", n.name, err)
	}
	if late := n.audit.Stats().Late; late > 0 {
		broke("%d records were written after the end of the audit of %s", late, n.name)
	}
}

// watchedCluster reports the owners of sessions.
type watchedCluster struct {
	*cluster.Node
	n *chaosNode
}

func (w watchedCluster) Enter(r store.SessionRecord) session.Place {
	w.n.ch.links.owns(r, w.n)
	return w.Node.Enter(r)
}

func (w watchedCluster) Take(ctx context.Context, v session.Visitor) (*session.Taken, error) {
	taken, err := w.Node.Take(ctx, v)
	if err == nil {
		w.n.ch.links.owns(taken.Record, w.n)
	}
	return taken, err
}
