package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"voicegw/internal/await"
)

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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

func TestSimulatorOverTLS(t *testing.T) {
	certFile, keyFile, pool := certificate(t)
	r := &running{t: t, signals: make(chan os.Signal, 1), exit: make(chan int, 1)}
	go func() {
		r.exit <- Run(context.Background(), Process{
			Args:   []string{"sim", "--listen", "127.0.0.1:0", "--tls-cert", certFile, "--tls-key", keyFile},
			Stdout: &r.out, Stderr: &r.err, Signals: r.signals,
		})
	}()
	url := regexp.MustCompile(`Gemini +base URL +(https://[0-9.:]+)`)
	await.True(t, "a base URL is told", func() bool { return url.MatchString(r.out.String()) })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(url.FindStringSubmatch(r.out.String())[1] + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// A WebSocket handshake needs HTTP/1.1, whatever a client would rather speak.
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 1 {
		t.Errorf("%s over HTTP/%d", resp.Status, resp.ProtoMajor)
	}
	r.signals <- syscall.SIGTERM
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, r.err.String())
	}
}
