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
	"slices"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/internal/bounded"
	"voicegw/internal/certs"
	"voicegw/internal/origin"
)

// openCertificates returns nil without TLS for clients. An error about the files wraps config.Problems.
func openCertificates(cfg *config.Config, dataDir string, logger *slog.Logger) (*certs.Store, error) {
	if !cfg.TLS.Enabled() {
		return nil, nil
	}
	o := certs.Options{Logger: logger}
	for _, c := range cfg.TLS.Certificates {
		o.Files = append(o.Files, certs.Pair{Cert: string(c.Cert), Key: string(c.Key)})
	}
	if a := cfg.TLS.ACME; len(a.Hosts) > 0 {
		cache := string(a.Cache)
		if cache == "" {
			if dataDir == "" {
				return nil, config.Problems{{Where: "tls.acme.cache",
					Message: "tls.acme.cache is missing, and there is no data folder for certificates; set one of them."}}
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

func certificateProblems(err error) error {
	found, ok := errors.AsType[certs.Problems](err)
	if !ok {
		return err
	}
	var problems config.Problems
	for _, one := range found {
		problems.Add("tls."+one.Where, "%s", one.Message)
	}
	return problems
}

func (s *server) clients() net.Listener {
	if s.certs == nil {
		return gateway.Listen(s.bound, s.loops)
	}
	return gateway.ListenTLS(s.bound, s.loops, s.certs.Config(), s.logger)
}

func scheme(cfg *config.Config) string {
	if cfg.TLS.Enabled() {
		return "https"
	}
	return "http"
}

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

// certified returns the certificates' hosts that a request may name.
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

// named replaces the host of an address with a configured host, because no certificate is for a local name.
func named(cfg *config.Config, address string) string {
	name := ""
	if len(cfg.TLS.ACME.Hosts) > 0 {
		name = cfg.TLS.ACME.Hosts[0]
	} else if len(cfg.TLS.Certificates) > 0 {
		name, _, _ = certs.NameOf(string(cfg.TLS.Certificates[0].Cert)) // otherwise the address has to do
	}
	_, port, err := net.SplitHostPort(address)
	if name == "" || err != nil {
		return address
	}
	return net.JoinHostPort(name, port)
}

// allowedHosts returns the allowed hosts and the foreign origins that may connect. certified are the hosts of the
// certificates, which are safe: over TLS, a web page cannot give the gateway another name.
func allowedHosts(cfg *config.Config, listen net.Addr, certified []string) (origin.Hosts, []origin.Pattern, error) {
	var hosts origin.Hosts
	if tcp, ok := listen.(*net.TCPAddr); ok {
		hosts.Listen = tcp.AddrPort().Addr()
	}
	for _, text := range slices.Concat(cfg.Hosts, cfg.TLS.ACME.Hosts, cfg.Phone.Host(), certified) {
		p, err := origin.ParseHostPattern(text)
		if err != nil {
			return hosts, nil, fmt.Errorf("hosts: %q %w", text, err)
		}
		hosts.Patterns = append(hosts.Patterns, p)
	}
	var origins []origin.Pattern
	for _, text := range cfg.Origins {
		p, _, err := origin.ParsePattern(text)
		if err != nil {
			return hosts, nil, fmt.Errorf("origins: %q %w", text, err)
		}
		origins = append(origins, p)
	}
	return hosts, origins, nil
}
