package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"voicegw/config"
	"voicegw/internal/bounded"
	"voicegw/internal/certs"
)

// trust returns nil for the system's authorities, which is the meaning of an empty file.
func trust(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca: no PEM certificate found in %s", ca)
	}
	return &tls.Config{RootCAs: roots}, nil
}

// localTrust completes the trust for a gateway on this machine that is addressed by IP address: its certificate is for a
// configured host and is trusted if it is in a configured file.
func localTrust(cfg *config.Config, c *tls.Config) (*tls.Config, error) {
	if !cfg.TLS.Enabled() {
		return c, nil
	}
	c = cmp.Or(c, &tls.Config{})
	if len(cfg.TLS.Certificates) == 0 {
		c.ServerName = cfg.TLS.ACME.Hosts[0]
		return c, nil
	}
	file := string(cfg.TLS.Certificates[0].Cert)
	host, leaf, err := certs.NameOf(file)
	if err != nil {
		return nil, fmt.Errorf("tls.certificates: %w; give the gateway's address with --url", err)
	}
	if c.ServerName = host; c.RootCAs == nil {
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool() // this system has no certificates
		}
		c.RootCAs.AddCert(leaf)
	}
	return c, nil
}

// clientWith returns a client with that trust; nil for the system's authorities.
func clientWith(trust *tls.Config) *http.Client {
	if trust == nil {
		return nil
	}
	t := bounded.NewTransport()
	t.TLSClientConfig = trust
	return &http.Client{Transport: t}
}
