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

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/internal/testutil"
)

func TestDataDir(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	here, err := os.Getwd() // as the system reports it: a temporary folder may be a link
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change  func(*config.Config)
		environ []string
		want    string
	}{
		"chosen":                {func(c *config.Config) { c.DataDir = "/data" }, []string{"XDG_STATE_HOME=/state"}, "/data"},
		"chosen, from here":     {func(c *config.Config) { c.DataDir = "data" }, nil, filepath.Join(here, "data")},
		"the user's":            {nil, []string{"XDG_STATE_HOME=/state", "HOME=/home/ada"}, "/state/voicegw"},
		"the user's by default": {nil, []string{"XDG_STATE_HOME=", "HOME=/home/ada"}, "/home/ada/.local/state/voicegw"},
		"a relative variable":   {nil, []string{"XDG_STATE_HOME=state", "HOME=/home/ada"}, "/home/ada/.local/state/voicegw"},
		"nowhere":               {nil, []string{"HOME=home"}, ""},
		"no data folder needed": {func(c *config.Config) { c.Store.URL, c.Audit.File = "nats://a", setting.Stdout }, nil, ""},
		"only the audit":        {func(c *config.Config) { c.Store.URL = "nats://a" }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			if tc.change != nil {
				tc.change(cfg)
			}
			got, err := Process{Environ: tc.environ}.dataDir(cfg)
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			var problems config.Problems
			needed := cfg.Store.URL == "" || cfg.Audit.File == ""
			if errors.As(err, &problems) != (tc.want == "" && needed) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAuditFile(t *testing.T) {
	cfg := config.Default()
	if got := auditFile(cfg, "/data"); got != "/data/audit/audit.jsonl" {
		t.Errorf("by default %q", got)
	}
	for _, chosen := range []setting.Path{setting.Stdout, "/log/a.jsonl"} {
		cfg.Audit.File = chosen
		if got := auditFile(cfg, "/data"); got != chosen {
			t.Errorf("%q instead of %q", got, chosen)
		}
	}
}

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
		Args: []string{"tools", "call", "kb_search", "--store", "--set", "store.url=" + url, "--set", "audit.file=-"}, Stdout: &out, Stderr: &stderr,
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
