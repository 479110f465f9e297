package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"voicegw/client/operator"
	"voicegw/config"
	"voicegw/gateway"
	"voicegw/internal/bounded"
	"voicegw/internal/certs"
	"voicegw/internal/origin"
)

// openCertificates reads the certificates of tls; nil if clients are spoken to without TLS. The error
// wraps config.Problems if it is about them.
func openCertificates(cfg *config.Config, dataDir string, logger *slog.Logger) (*certs.Store, error) {
	if !cfg.TLS.Enabled() {
		return nil, nil
	}
	o := certs.Options{Files: pairs(cfg), Logger: logger}
	if a := cfg.TLS.ACME; len(a.Hosts) > 0 {
		cache := string(a.Cache)
		if cache == "" {
			if dataDir == "" {
				return nil, config.Problems{{Where: "tls.acme.cache", Message: "tls.acme.cache is missing, and there is no data folder to keep certificates in; name a folder for them."}}
			}
			cache = filepath.Join(dataDir, "certificates")
		}
		o.ACME = &certs.ACME{Hosts: a.Hosts, Email: a.Email, Directory: a.Directory, Cache: cache}
	}
	s, err := certs.Open(o)
	if err != nil {
		return nil, certificateProblems(err)
	}
	return s, nil
}

// certificateProblems returns what is wrong with certificates as problems of the configuration.
func certificateProblems(err error) error {
	found, ok := errors.AsType[certs.Problems](err)
	if !ok {
		return err
	}
	var problems config.Problems
	for _, one := range found {
		problems = append(problems, config.Problem{Where: "tls." + one.Where, Message: one.Message})
	}
	return problems
}

func pairs(cfg *config.Config) []certs.Pair {
	list := make([]certs.Pair, len(cfg.TLS.Certificates))
	for i, c := range cfg.TLS.Certificates {
		list[i] = certs.Pair{Cert: string(c.Cert), Key: string(c.Key)}
	}
	return list
}

// clients returns the listener for clients: bounded, on the loops, and with TLS if it is configured.
func (s *server) clients() net.Listener {
	if s.certs == nil {
		return gateway.Listen(s.bound, s.loops)
	}
	return gateway.ListenTLS(s.bound, s.loops, s.certs.Config(), s.logger)
}

// scheme returns https or http.
func scheme(cfg *config.Config) string {
	if cfg.TLS.Enabled() {
		return "https"
	}
	return "http"
}

// trust returns how a command checks the certificate of a gateway: by the authorities in the file ca,
// or if it is empty, by those of the system (nil).
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
		return nil, fmt.Errorf("--ca: the file %s holds no certificate in PEM form", ca)
	}
	return &tls.Config{RootCAs: roots}, nil
}

// localTrust is trust for a gateway on this machine that is asked by its address: its certificate is for
// a name of its configuration, and is trusted if it stands in a file there.
func localTrust(cfg *config.Config, ca string) (*tls.Config, error) {
	c, err := trust(ca)
	if err != nil || !cfg.TLS.Enabled() {
		return c, err
	}
	c = cmp.Or(c, &tls.Config{})
	if len(cfg.TLS.ACME.Hosts) > 0 {
		c.ServerName = cfg.TLS.ACME.Hosts[0]
	}
	if len(cfg.TLS.Certificates) == 0 {
		return c, nil
	}
	file := string(cfg.TLS.Certificates[0].Cert)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tls.certificates: %w; say with --url where the gateway is", err)
	}
	host, leaf := certs.NameOf(text)
	if host == "" {
		return nil, fmt.Errorf("tls.certificates: the file %s holds no certificate that names a host; say with --url where the gateway is", file)
	}
	if c.ServerName = host; c.RootCAs == nil {
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool() // this system has no certificates
		}
		c.RootCAs.AddCert(leaf)
	}
	return c, nil
}

// clientWith returns a client that checks certificates so; nil for the system's authorities.
func clientWith(trust *tls.Config) *http.Client {
	if trust == nil {
		return nil
	}
	t := bounded.NewTransport()
	t.TLSClientConfig = trust
	return &http.Client{Transport: t}
}

// gatewayOf returns the base URL of the gateway that a command asks, and how its certificate is checked
// (nil: by the system's authorities).
func gatewayOf(given, ca string, cfg *config.Config) (base string, trusted *tls.Config, err error) {
	if base, err = operator.BaseURL(given, scheme(cfg), cfg.Listen); err != nil {
		return "", nil, err
	}
	check := trust
	if given == "" {
		check = func(ca string) (*tls.Config, error) { return localTrust(cfg, ca) }
	}
	trusted, err = check(ca)
	return base, trusted, err
}

// certified returns the names of the certificates that a request may ask for. One that no request can
// have is left out; doors allow addresses by the one that is listened on.
func (s *server) certified() (hosts []string) {
	if s.certs == nil {
		return nil
	}
	for _, host := range s.certs.Hosts() {
		if _, err := origin.ParseHostPattern(host); err == nil && net.ParseIP(host) == nil {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// named returns the address to type, with a name of the configuration: no certificate is for this
// machine's own.
func named(cfg *config.Config, address string) string {
	name := ""
	if len(cfg.TLS.ACME.Hosts) > 0 {
		name = cfg.TLS.ACME.Hosts[0]
	} else if len(cfg.TLS.Certificates) > 0 {
		text, err := os.ReadFile(string(cfg.TLS.Certificates[0].Cert))
		if err == nil {
			name, _ = certs.NameOf(text)
		}
	}
	_, port, err := net.SplitHostPort(address)
	if name == "" || err != nil {
		return address
	}
	return net.JoinHostPort(name, port)
}

// socketScheme returns wss or ws.
func socketScheme(cfg *config.Config) string {
	if cfg.TLS.Enabled() {
		return "wss"
	}
	return "ws"
}
