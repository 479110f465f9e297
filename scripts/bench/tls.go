//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
)

// certificate returns the certificate for 127.0.0.1 that Go has for tests.
func certificate() tls.Certificate {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return server.TLS.Certificates[0]
}

// writeCert writes a certificate as PEM.
func writeCert(name string, c tls.Certificate) error {
	return os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o600)
}

// write writes that certificate and its key.
func (p pair) write() error {
	c := certificate()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return err
	}
	return errors.Join(writeCert(p.cert, c), os.WriteFile(p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

// overTLS serves TLS on a listener's connections, with that certificate. It is written to certFile, for
// the clients that must trust it.
func overTLS(ln net.Listener, certFile string) (net.Listener, error) {
	c := certificate()
	if err := writeCert(certFile, c); err != nil {
		return nil, err
	}
	return tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c}}), nil
}

// trusting returns a client that trusts the certificate of a file.
func trusting(certFile string) (*http.Client, error) {
	text, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", certFile)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}, nil
}
