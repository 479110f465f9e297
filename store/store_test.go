package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/testutil"
)

// openTest opens a store that is closed at the end of the test.
func openTest(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), patient(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(o.Dir); o.Dir != "" && err == nil { // some tests move it away
			testutil.CheckFolder(t, o.Dir)
		}
	})
	return s
}

// patient lets operations on a data folder wait for a stalled disk: the default of 5 s is for callers, and a busy
// machine has exceeded it. Stores without a folder keep the default, which the tests of outages need.
func patient(o Options) Options {
	if o.Dir != "" {
		o.Wait = cmp.Or(o.Wait, testutil.WaitLimit)
	}
	return o
}

// testLog gives a store's log lines to the test.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// startServer starts a server on its own port, like an external one.
func startServer(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	s := begin(t, o)
	if !s.ReadyForConnections(testutil.WaitLimit) {
		t.Fatal("the server does not start")
	}
	return s
}

// begin starts a server without waiting for it.
func begin(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.NoSigs, o.NoLog, o.Host = true, true, "127.0.0.1"
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// startJetStream starts a server with JetStream on its own folder.
func startJetStream(t testing.TB) *server.Server {
	t.Helper()
	return startServer(t, &server.Options{Port: -1, JetStream: true, StoreDir: filepath.Join(t.TempDir(), "nats")})
}

// startCluster starts three servers that know each other, and returns their URLs.
func startCluster(t testing.TB) (all []*server.Server, urls string) {
	t.Helper()
	// JetStream needs the routes before it starts, so the ports are chosen first.
	var routes []*url.URL
	for range 3 {
		addr, err := testutil.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		routes = append(routes, &url.URL{Scheme: "nats", Host: addr})
	}
	for i, route := range routes {
		port, _ := strconv.Atoi(route.Port())
		all = append(all, begin(t, &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Port: -1, JetStream: true, StoreDir: filepath.Join(t.TempDir(), "nats"),
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}, Routes: routes,
		}))
	}
	for _, s := range all {
		if !s.ReadyForConnections(testutil.WaitLimit) {
			t.Fatal("the cluster does not start")
		}
		urls += "," + s.ClientURL()
	}
	return all, urls[1:]
}
