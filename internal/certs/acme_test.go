package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"voicegw/internal/testutil"
)

// pebble is the test authority of Let's Encrypt, with its version.
const pebble = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1"

// build returns the program, or skips the test if it cannot be downloaded.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "install", pebble)
	cmd.Dir = dir // outside of this module
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("pebble cannot be fetched and built here: %v\n%s", err, out)
	}
	return filepath.Join(dir, "pebble")
}

// startPebble runs it without checks of the orders, and returns its directory, a client that trusts it, and its root
// certificate.
func startPebble(t *testing.T) (directory string, client *http.Client, root func() *x509.Certificate) {
	t.Helper()
	program := build(t)
	a := newAuthority(t)
	own := a.write(t, t.TempDir(), wanted{names: []string{"127.0.0.1"}})
	var ports [2]string
	for i := range ports {
		var err error
		if ports[i], err = testutil.FreeAddr(); err != nil {
			t.Fatal(err)
		}
	}
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": ports[0], "managementListenAddress": ports[1], "certificate": own.Cert, "privateKey": own.Key,
		"httpPort": 5002, "tlsPort": 5001,
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pebble.json")
	writeFile(t, file, config)
	cmd := exec.Command(program, "-config", file)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_ALWAYS_VALID=1", "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	var out lines
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // its only way to end
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	client = &http.Client{Transport: transport}
	get := func(url string) ([]byte, error) {
		resp, err := client.Get(url)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return io.ReadAll(resp.Body)
	}
	directory = "https://" + ports[0] + "/dir"
	testutil.WaitUntil(t, "pebble answers", func() bool { _, err := get(directory); return err == nil })
	return directory, client, func() *x509.Certificate {
		text, err := get("https://" + ports[1] + "/roots/0")
		if err != nil {
			t.Fatal(err)
		}
		return parsePEM(t, text)
	}
}

// TestOrderedCertificates: a certificate is ordered for each host before the first handshake, used, stored in the folder,
// and found there by the next process; no other host gets one.
func TestOrderedCertificates(t *testing.T) {
	directory, client, root := startPebble(t)
	cache := filepath.Join(t.TempDir(), "certificates")
	a := newAuthority(t)
	file := a.write(t, t.TempDir(), wanted{names: []string{"files.example.com"}})
	opts := Options{Files: []Pair{file}, ACME: &ACME{
		Hosts: []string{"voice.example.com", "Other.example.com", "files.example.com"}, Email: "operator@example.com",
		Directory: directory, Cache: cache, Client: client,
	}}
	s, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	runs(t, s)
	issued := &authority{cert: root()}
	first, err := issued.shown(s, "voice.example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := issued.shown(s, "other.example.com", nil); err != nil {
		t.Error(err)
	}
	if _, err := issued.shown(s, "stranger.example.com", nil); err == nil {
		t.Error("there is a certificate for a host that is not configured")
	}
	if c, err := a.shown(s, "files.example.com", nil); err != nil || c.SerialNumber.Int64() != 2 {
		t.Errorf("a file has no precedence: %v, %v", c, err)
	}
	if end := s.Expiry()["voice.example.com"]; !end.Equal(first.NotAfter) {
		t.Errorf("the store reports the end %s; it ends at %s", end, first.NotAfter)
	}
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	next, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	runs(t, next)
	if again, err := issued.shown(next, "voice.example.com", nil); err != nil || !again.Equal(first) {
		t.Errorf("the next process shows another certificate: %v", err)
	}
}

// TestNoOrderByHandshakes: handshakes order nothing. While the authority fails, it gets one request, a client waits no
// longer than its own timeout, and the end of Run ends a hanging request.
func TestNoOrderByHandshakes(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	hangs := make(chan struct{})
	hung := make(chan struct{}, 1)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		first := asked == 1
		mu.Unlock()
		if first {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		hung <- struct{}{}
		<-hangs
	}))
	defer srv.Close()
	defer close(hangs)
	s, err := Open(Options{ACME: &ACME{Hosts: []string{"voice.example.com"}, Directory: srv.URL, Cache: t.TempDir(), Client: srv.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	testutil.WaitUntil(t, "the order has failed", func() bool {
		o := s.orders["voice.example.com"]
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.why != nil
	})
	for range 5 {
		leaves, leave := context.WithCancel(t.Context())
		leave()
		if _, err := s.orders["voice.example.com"].wait(leaves); err == nil || !strings.Contains(err.Error(), "no certificate for") {
			t.Errorf("a client gets %v", err)
		}
	}
	if len(s.Expiry()) != 0 {
		t.Error("a missing certificate has an end")
	}
	mu.Lock()
	if asked != 1 {
		t.Errorf("the authority was asked %d times", asked)
	}
	mu.Unlock()
	cancel()
	running.Wait()

	ctx, cancel = context.WithCancel(t.Context())
	s, err = Open(Options{ACME: &ACME{Hosts: []string{"voice.example.com"}, Directory: srv.URL, Cache: t.TempDir(), Client: srv.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { s.Run(ctx) })
	testutil.WaitNext(t, "a request that hangs", hung)
	cancel()
	running.Wait()
}

func parsePEM(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no PEM: %s", text)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
