package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/server"
	"voicegw/internal/testutil"
)

// TestStoreElsewhere: a gateway works with an external NATS server and without a folder. Without the server it is alive
// but not ready; if the server is missing at the start, the error names the setting.
func TestStoreElsewhere(t *testing.T) {
	t.Parallel()
	options := &natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	nats := startNATS(t, options)
	url := nats.ClientURL()
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "nats://"), ":")
	var err error
	if options.Port, err = strconv.Atoi(port); err != nil { // for its restart
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "unused")
	r := start(t, "--data-dir", data, "--set", "store.url="+url)
	if _, err := os.Stat(filepath.Join(data, "store")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is used: %v", err)
	}
	if got := r.readiness(); got == "unavailable" {
		t.Error("it is not ready")
	}
	nats.Shutdown()
	nats.WaitForShutdown()
	testutil.WaitUntil(t, "it is not ready", func() bool { return r.readiness() == "unavailable" })
	if got := r.status("/healthz"); got != http.StatusOK {
		t.Errorf("GET /healthz: %d", got)
	}
	r.logged("readiness changed")

	var out, stderr console
	code := Run(t.Context(), Process{
		Args: []string{"tools", "call", "kb_search", "--store", "--set", "store.url=" + url, "--set", "audit.file=-"},
		Host: server.Host{Stdout: &out, Stderr: &stderr},
	})
	if code != exitFailure || !strings.Contains(stderr.String(), "store.url") || !strings.Contains(stderr.String(), port) {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}

	startNATS(t, options)
	testutil.WaitUntil(t, "it is ready again", func() bool { return r.readiness() == "ready" })
}

func startNATS(t *testing.T, options *natsserver.Options) *natsserver.Server {
	t.Helper()
	nats, err := natsserver.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	t.Cleanup(func() {
		nats.Shutdown()
		nats.WaitForShutdown()
	})
	if !nats.ReadyForConnections(20 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return nats
}
