package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"voicegw/internal/auth"
	"voicegw/internal/testutil"
)

// site is three gateways with one store behind a balancer. Each gateway, each server of the store and the simulator of
// the models is a process of its own, so that every gateway can continue the sessions of another one.
type site struct {
	t        *testing.T
	nats     *natsCluster
	sim      *child
	simAddr  string
	tools    string // the registry of the tools
	world    world
	gateways []*node
	balancer *balancer
	crowd    bool
}

// node is one of the gateways.
type node struct {
	*child
	addr, peer string
	dir, file  string // its data folder and its configuration
}

// siteOptions are the differences to the usual site.
type siteOptions struct {
	// more is appended to each gateway's configuration (YAML).
	more string
	// old is the path of an older program for the first gateway; empty for none.
	old string
	// simFlags are flags of the simulator.
	simFlags []string
	// crowd means many sessions: the gateways then run without the race detector.
	crowd bool
}

func startSite(t *testing.T, o siteOptions) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, world: world{filepath.Join(dir, "world")}, tools: worldRegistry(t, dir), crowd: o.crowd}
	scenario := filepath.Join(dir, "scenario.yaml")
	if err := os.WriteFile(scenario, []byte(worldScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	s.nats = startCluster(t)
	s.simAddr = freeAddrs(t, 1)[0]
	s.sim = startPlainChild(t, "voicegw", nil, append([]string{"sim", "--listen", s.simAddr, "--scenario", scenario, "--log-level", "warn"}, o.simFlags...)...)
	var addrs []string
	for i := range clusterSize {
		n := &node{dir: t.TempDir(), file: filepath.Join(dir, fmt.Sprintf("gateway-%d.yaml", i+1))}
		s.gateways = append(s.gateways, n)
		s.place(i, o)
	}
	for i, n := range s.gateways {
		for !s.serves(n) { // another program has taken one of its ports
			s.place(i, o)
		}
		addrs = append(addrs, n.addr)
	}
	s.balancer = startBalancer(t, addrs)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for i, n := range s.gateways {
			t.Logf("output of gateway %d:\n%s", i+1, n.said)
		}
		t.Logf("output of the simulator:\n%s", s.sim.said)
	})
	return s
}

// place starts a gateway at new addresses.
func (s *site) place(i int, o siteOptions) {
	s.t.Helper()
	n, addrs := s.gateways[i], freeAddrs(s.t, 2)
	n.addr, n.peer = addrs[0], addrs[1]
	if err := os.WriteFile(n.file, []byte(s.config(n)+o.more), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.start(i, o.old)
}

// serves waits until a gateway serves; false if one of its ports is taken.
func (s *site) serves(n *node) (does bool) {
	s.t.Helper()
	testutil.WaitUntil(s.t, "a gateway serves", func() bool {
		does = len(n.lines("serving")) > 0
		if n.over() && !strings.Contains(n.said.String(), "address already in use") {
			s.t.Fatalf("a gateway has ended with %d:\n%s", n.code, n.said)
		}
		return does || n.over()
	})
	return does
}

// config returns a gateway's configuration.
func (s *site) config(n *node) string {
	return fmt.Sprintf(`
listen: %s
data_dir: %s
drain_timeout: 30s
log: {level: info, format: json}
audit: {arguments: full}
store: {url: "%s", replicas: %d}
cluster: {listen: %s, url: "http://%s", secret: a-secret-that-all-gateways-have-in-common}
limits: {exempt_loopback: true}
providers:
  gemini: {api_key: simulated, base_url: "http://%s"}
  openai: {api_key: simulated, base_url: "http://%s/v1"}
provider: gemini
`, n.addr, n.dir, s.nats.url(), clusterSize, n.peer, n.peer, s.simAddr, s.simAddr)
}

// start starts a stopped gateway. The first one may be an older program.
func (s *site) start(i int, old string) {
	s.t.Helper()
	n := s.gateways[i]
	if i == 0 && old != "" {
		n.child = startProgram(s.t, old, "voicegw", nil, "serve", "--config", n.file)
		return
	}
	start := startChild
	if s.crowd {
		start = startPlainChild
	}
	n.child = start(s.t, "voicegw", []string{registryEnv + "=" + s.tools, worldEnv + "=" + s.world.path}, "serve", "--config", n.file)
}

// url is the address for clients.
func (s *site) url() string { return "ws://" + s.balancer.addr + "/v1/voice" }

// listed is a session in GET /v1/sessions.
type listed struct {
	ID, Node string
	Away     bool
	Moving   bool
	NodeGone bool `json:"node_gone"`
}

// sessions asks a gateway for the sessions of all gateways.
func (s *site) sessions(i int) (list []listed, err error) {
	n := s.gateways[i]
	key, err := auth.ReadOperatorKey(n.dir)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+n.addr+"/v1/sessions", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var body struct {
		Sessions   []listed
		Incomplete bool
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return nil, err
	}
	if body.Incomplete || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /v1/sessions: %s, incomplete %v", resp.Status, body.Incomplete)
	}
	return body.Sessions, nil
}

// known waits until every running gateway lists that many sessions, so that clients can resume them.
func (s *site) known(n int) {
	s.t.Helper()
	for i, g := range s.gateways {
		if g.over() {
			continue
		}
		testutil.WaitUntil(s.t, fmt.Sprintf("gateway %d lists %d sessions", i+1, n), func() bool {
			list, err := s.sessions(i)
			running := slices.DeleteFunc(list, func(l listed) bool { return l.NodeGone })
			return err == nil && len(running) == n
		})
	}
}

// audits are the audit files of all gateways.
func (s *site) audits() (paths []string) {
	for _, n := range s.gateways {
		paths = append(paths, filepath.Join(n.dir, "audit", "audit.jsonl"))
	}
	return paths
}

// close stops the gateways like an operator, then checks their exit codes and searches the disks for secrets.
func (s *site) close() {
	s.t.Helper()
	for _, n := range s.gateways {
		n.signal(syscall.SIGTERM)
	}
	for i, n := range s.gateways {
		killed := n.over() && n.code < 0
		if code := n.exits(); code != 0 && !killed {
			s.t.Errorf("gateway %d ended with %d", i+1, code)
		}
		testutil.Check(testutil.Log, []byte(n.said.String()))
	}
	s.nats.killAll()
	for _, dir := range s.nats.dirs() {
		testutil.CheckFolder(s.t, dir)
	}
}

// own returns the ids of the sessions of a gateway; nil if it does not answer.
func (s *site) own(i int) (ids []string) {
	list, err := s.sessions(i)
	if err != nil {
		return nil
	}
	for _, l := range list {
		if l.Node == "" {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// busiest is the gateway with the most sessions.
func (s *site) busiest() (i int, ids []string) {
	for g := range s.gateways {
		if own := s.own(g); len(own) > len(ids) {
			i, ids = g, own
		}
	}
	return i, ids
}
