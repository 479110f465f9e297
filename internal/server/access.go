package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/internal/auth"
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

func (s *Server) clients() net.Listener {
	if s.certs == nil {
		return gateway.Listen(s.bound, s.loops)
	}
	return gateway.ListenTLS(s.bound, s.loops, s.certs.Config(), s.logger)
}

// certified returns the certificates' hosts that a request may name.
func (s *Server) certified() (hosts []string) {
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

// authenticator makes one from a configuration; the address doesn't change after the start. The operators' key is the
// configured one, or the one in the data folder. Without either they have none.
func (s *Server) authenticator(cfg *config.Config) (*auth.Authenticator, error) {
	operators := cfg.APIKey.Reveal()
	if operators == "" && s.dataDir == "" {
		s.logger.Warn("the operators' endpoints are disabled: no api_key is set, and there is no data folder to generate one in")
	} else if operators == "" {
		var err error
		if operators, err = auth.OwnOperatorKey(s.dataDir); err != nil {
			return nil, err
		}
	}
	keys, issuers := cfg.Auth.Options()
	return auth.New(auth.Options{
		OperatorKey: operators, Keys: keys, Issuers: issuers, EnforceExpiry: cfg.Auth.EnforceExpiry,
		Exposed: !config.Loopback(s.cfg.Listen), Logger: s.logger,
	})
}
