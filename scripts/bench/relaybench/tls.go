//go:build linux

package main

import (
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
)

// tlsRoom is how much the provider reads from a connection at once, in bytes.
const tlsRoom = 8 << 10

// overTLS serves TLS on a listener's connections, with the certificate for 127.0.0.1 that Go has
// for tests. It is written to certFile, as PEM, for the clients that must trust it.
func overTLS(ln net.Listener, certFile string) (net.Listener, error) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(certFile, text, 0o600); err != nil {
		return nil, err
	}
	return tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: server.TLS.Certificates}), nil
}
