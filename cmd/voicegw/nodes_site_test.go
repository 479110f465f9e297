package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"voicegw/internal/await"
	"voicegw/internal/operatorkey"
	"voicegw/internal/secretwatch/secrettest"
)

// site is three gateways with one store, behind a balancer: each gateway and each server of the store is
// a process of its own, and so is the simulator of the models, so that every gateway can go on with what
// another one has begun there.
type site struct {
	t        *testing.T
	nats     *natsCluster
	sim      *child
	simAddr  string
	tools    string // the registry of the tools
	world    world
	gateways []*node
	balancer *balancer
}

// node is one of the gateways.
type node struct {
	*child
	addr, peer string
	dir, file  string // its data folder and its configuration
}

// siteOptions are how a site differs from the usual one.
type siteOptions struct {
	// more is put at the end of each gateway's configuration: YAML.
	more string
	// simFlags are flags of the simulator.
	simFlags []string
}

func startSite(t *testing.T, o siteOptions) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, world: world{filepath.Join(dir, "world")}, tools: worldRegistry(t, dir)}
	scenario := filepath.Join(dir, "scenario.yaml")
	if err := os.WriteFile(scenario, []byte(worldScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	s.nats = startCluster(t)
	s.simAddr = freeAddrs(t, 1)[0]
	s.sim = startChild(t, "voicegw", nil, append([]string{"sim", "--listen", s.simAddr, "--scenario", scenario, "--log-level", "warn"}, o.simFlags...)...)
	addrs, peers := freeAddrs(t, clusterSize), freeAddrs(t, clusterSize)
	for i := range clusterSize {
		n := &node{addr: addrs[i], peer: peers[i], dir: t.TempDir(), file: filepath.Join(dir, fmt.Sprintf("gateway-%d.yaml", i+1))}
		if err := os.WriteFile(n.file, []byte(s.config(n)+o.more), 0o600); err != nil {
			t.Fatal(err)
		}
		s.gateways = append(s.gateways, n)
	}
	for i := range s.gateways {
		s.start(i)
	}
	for _, n := range s.gateways {
		n.logged("serving")
	}
	s.balancer = startBalancer(t, addrs)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for i, n := range s.gateways {
			t.Logf("gateway %d said:\n%s", i+1, n.said)
		}
		t.Logf("the simulator said:\n%s", s.sim.said)
	})
	return s
}

// config is a gateway's configuration.
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

// start starts a gateway that does not run.
func (s *site) start(i int) {
	s.t.Helper()
	n := s.gateways[i]
	n.child = startChild(s.t, "voicegw", []string{registryEnv + "=" + s.tools, worldEnv + "=" + s.world.path}, "serve", "--config", n.file)
}

// url is where clients connect.
func (s *site) url() string { return "ws://" + s.balancer.addr + "/v1/voice" }

// listed is a session in GET /v1/sessions.
type listed struct {
	ID, Node string
	Away     bool
	Moving   bool
	NodeGone bool `json:"node_gone"`
}

// sessions asks a gateway for the sessions of all.
func (s *site) sessions(i int) (list []listed, err error) {
	n := s.gateways[i]
	key, err := operatorkey.Read(n.dir)
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

// known waits until every gateway that runs lists so many sessions: those that come back can be found.
func (s *site) known(n int) {
	s.t.Helper()
	for i, g := range s.gateways {
		if g.over() {
			continue
		}
		await.True(s.t, fmt.Sprintf("gateway %d lists %d sessions", i+1, n), func() bool {
			list, err := s.sessions(i)
			running := slices.DeleteFunc(list, func(l listed) bool { return l.NodeGone })
			return err == nil && len(running) == n
		})
	}
}

// audits are the files of the audit of all gateways.
func (s *site) audits() (paths []string) {
	for _, n := range s.gateways {
		paths = append(paths, filepath.Join(n.dir, "audit", "audit.jsonl"))
	}
	return paths
}

// close ends all gateways in order, as an operator does, and looks at what they have left: an exit code,
// and no secret on any disk.
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
		secrettest.Check(secrettest.Log, []byte(n.said.String()))
	}
	s.nats.killAll()
	for _, dir := range s.nats.dirs() {
		secrettest.CheckFolder(s.t, dir)
	}
}
