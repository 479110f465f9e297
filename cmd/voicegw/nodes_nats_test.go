package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"voicegw/internal/testutil"
)

// natsName is the name of this test binary as a NATS server.
const natsName = "nats-server"

// natsReady is printed by the server when it is ready.
const natsReady = "it serves"

// natsSetting is the server's only argument, as JSON.
type natsSetting struct {
	Name, Dir string
	// Addr is for clients, Route for the other servers; Routes are the routes of all servers.
	Addr, Route string
	Routes      []string
}

// natsProgram is a server of a cluster; it runs until its standard input closes or a signal arrives.
func natsProgram() {
	dieWithParent()
	var set natsSetting
	if err := json.Unmarshal([]byte(os.Args[1]), &set); err != nil {
		panic(err)
	}
	o := &natsserver.Options{
		ServerName: set.Name, JetStream: true, StoreDir: set.Dir, NoSigs: true, NoLog: true,
		Cluster: natsserver.ClusterOpts{Name: "voicegw-test"}, Routes: natsserver.RoutesFromStr(routesOf(set.Routes)),
	}
	o.Host, o.Port = hostPort(set.Addr)
	o.Cluster.Host, o.Cluster.Port = hostPort(set.Route)
	s, err := natsserver.NewServer(o)
	if err != nil {
		panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(testutil.WaitLimit) {
		panic("the NATS server does not start")
	}
	fmt.Fprintln(os.Stderr, natsReady)
	s.WaitForShutdown()
}

func routesOf(addrs []string) string {
	var urls []string
	for _, a := range addrs {
		urls = append(urls, "nats://"+a)
	}
	return strings.Join(urls, ",")
}

func hostPort(addr string) (host string, port int) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		panic(err)
	}
	return host, port
}

// natsCluster is three NATS servers with JetStream, each in its own process, over real sockets.
type natsCluster struct {
	t       *testing.T
	servers []natsSetting
	running []*child // nil for a stopped server
}

// clusterSize is the number of servers and of gateways.
const clusterSize = 3

func freeAddrs(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for range n {
		a, err := testutil.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, a)
	}
	return addrs
}

// startCluster starts the servers and waits until they can store a record on three of them.
func startCluster(t *testing.T) *natsCluster {
	t.Helper()
	n := &natsCluster{t: t, running: make([]*child, clusterSize)}
	routes := freeAddrs(t, clusterSize)
	for i, addr := range freeAddrs(t, clusterSize) {
		n.servers = append(n.servers, natsSetting{Name: fmt.Sprint("n", i+1), Dir: t.TempDir(), Addr: addr, Route: routes[i], Routes: routes})
	}
	n.startAll()
	return n
}

func (n *natsCluster) url() string {
	var all []string
	for _, s := range n.servers {
		all = append(all, "nats://"+s.Addr)
	}
	return strings.Join(all, ",")
}

func (n *natsCluster) start(i int) {
	n.t.Helper()
	set, err := json.Marshal(n.servers[i])
	if err != nil {
		n.t.Fatal(err)
	}
	n.running[i] = startPlainChild(n.t, natsName, nil, string(set))
}

// startAll starts the stopped servers, and waits until the cluster works.
func (n *natsCluster) startAll() {
	n.t.Helper()
	for i, c := range n.running {
		if c == nil {
			n.start(i)
		}
	}
	n.works()
}

// killAll kills all servers.
func (n *natsCluster) killAll() {
	for _, c := range n.running {
		if c != nil {
			c.signal(syscall.SIGKILL)
		}
	}
	for i := range n.running {
		n.kill(i)
	}
}

func (n *natsCluster) kill(i int) {
	if n.running[i] != nil {
		n.running[i].kill()
		n.running[i] = nil
	}
}

// connect calls do with a connection to the cluster.
func (n *natsCluster) connect(do func(nats.JetStreamContext) error) error {
	conn, err := nats.Connect(n.url(), nats.Timeout(5*time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := conn.JetStream(nats.MaxWait(5 * time.Second))
	if err != nil {
		return err
	}
	return do(js)
}

// works waits until the cluster can store a record on all its servers.
func (n *natsCluster) works() {
	n.t.Helper()
	const probe = "PROBE"
	testutil.WaitUntil(n.t, "the NATS cluster works", func() bool {
		return n.connect(func(js nats.JetStreamContext) error {
			_, err := js.AddStream(&nats.StreamConfig{Name: probe, Subjects: []string{"probe"}, Replicas: clusterSize, Storage: nats.MemoryStorage})
			if err == nil {
				_, err = js.Publish("probe", nil)
			}
			_ = js.DeleteStream(probe) // it may not exist
			return err
		}) == nil
	})
}

// dirs are the data folders of the servers.
func (n *natsCluster) dirs() (dirs []string) {
	for _, s := range n.servers {
		dirs = append(dirs, s.Dir)
	}
	return dirs
}

// leader waits for a leader of a bucket's stream and returns it.
func (n *natsCluster) leader(bucket string) (i int) {
	n.t.Helper()
	testutil.WaitUntil(n.t, bucket+" has a leader", func() bool {
		i = -1
		_ = n.connect(func(js nats.JetStreamContext) error {
			info, err := js.StreamInfo("KV_" + bucket)
			if err == nil && info.Cluster != nil {
				i = slices.IndexFunc(n.servers, func(s natsSetting) bool { return s.Name == info.Cluster.Leader })
			}
			return err
		})
		return i >= 0
	})
	return i
}
