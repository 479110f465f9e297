package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"voicegw/internal/server"
	"voicegw/internal/testutil"
)

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"voice.localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	for name, data := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pool
}

// TestServeOverTLS: a gateway speaks only TLS, its own commands find and trust it, a conversation works, and a renewed
// certificate is used without a restart.
func TestServeOverTLS(t *testing.T) {
	certFile, keyFile, _ := certificate(t)
	listen, err := testutil.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, "--listen", listen, "--sim", "always", "--set", "tls.certificates="+certFile+"="+keyFile)
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Run(context.Background(), Process{Args: args, Stdin: strings.NewReader(""), Host: server.Host{Stdout: &out, Stderr: &errs}}); code != exitOK {
			t.Errorf("%s: exit code %d\n%s", args[0], code, errs.String())
		}
		return out.String()
	}
	local := []string{"--set", "listen=" + listen, "--set", "tls.certificates=" + certFile + "=" + keyFile}
	if out := run(append([]string{"health"}, local...)...); !strings.Contains(out, "ok") {
		t.Errorf("health prints %q", out)
	}
	if out := run(append([]string{"console", "--data-dir", r.dataDir}, local...)...); !strings.HasPrefix(out, "https://") {
		t.Errorf("the console is at %q", out)
	}
	if out := run("talk", "--url", "wss://"+listen+"/v1/voice", "--ca", certFile, "--text", "hello", "--json"); !strings.Contains(out, "session.started") {
		t.Errorf("talk shows %q", out)
	}
	if code := Run(context.Background(), Process{Args: []string{"health", "--url", "https://" + listen}, Stdin: strings.NewReader(""), Host: server.Host{Stdout: io.Discard, Stderr: io.Discard}}); code == exitOK {
		t.Error("a certificate of no authority is trusted")
	}
	shown := func() string {
		c, err := tls.Dial("tcp", listen, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if state := c.ConnectionState(); state.Version < tls.VersionTLS13 {
			t.Errorf("the version is %s", tls.VersionName(state.Version))
		}
		return string(c.ConnectionState().PeerCertificates[0].Raw)
	}
	before := shown()
	renewedCert, renewedKey, _ := certificate(t)
	for from, to := range map[string]string{renewedKey: keyFile, renewedCert: certFile} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testutil.WaitUntil(t, "the renewed certificate is shown", func() bool { return shown() != before })
}

// TestCertificatesAreChecked: all certificates are checked before the gateway serves.
func TestCertificatesAreChecked(t *testing.T) {
	certFile, _, _ := certificate(t)
	_, otherKey, _ := certificate(t)
	var out, errs bytes.Buffer
	code := Run(context.Background(), Process{
		Args: []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--set", "tls.certificates=" + certFile + "=" + otherKey + ",/missing.pem=/missing.key",
			"--set", "tls.acme.hosts=*.example.com"}, Stdin: strings.NewReader(""),
		Host: server.Host{Stdout: &out, Stderr: &errs},
	})
	for _, want := range []string{"tls.certificates[0].cert", "do not match", "/missing.pem", "/missing.key", "tls.acme.hosts"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("the output lacks %s:\n%s", want, errs.String())
		}
	}
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}

func TestSimulatorOverTLS(t *testing.T) {
	certFile, keyFile, pool := certificate(t)
	r := &running{t: t, signals: make(chan os.Signal, 1), exit: make(chan int, 1)}
	go func() {
		r.exit <- Run(context.Background(), Process{
			Args: []string{"sim", "--listen", "127.0.0.1:0", "--tls-cert", certFile, "--tls-key", keyFile},
			Host: server.Host{Stdout: &r.out, Stderr: &r.err, Signals: r.signals},
		})
	}()
	url := regexp.MustCompile(`Gemini +base URL +(https://[0-9.:]+)`)
	testutil.WaitUntil(t, "a base URL is printed", func() bool { return url.MatchString(r.out.String()) })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(url.FindStringSubmatch(r.out.String())[1] + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// A WebSocket handshake needs HTTP/1.1, whichever version a client prefers.
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 1 {
		t.Errorf("%s over HTTP/%d", resp.Status, resp.ProtoMajor)
	}
	r.signals <- syscall.SIGTERM
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, r.err.String())
	}
}
