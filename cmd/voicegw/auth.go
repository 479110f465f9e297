package main

import (
	"errors"
	"io/fs"
	"net/url"

	"voicegw/config"
	"voicegw/internal/auth"
	"voicegw/internal/origin"
)

// authenticator makes one from a configuration; the address doesn't change after the start. The operators' key is the
// configured one, or the one in the data folder. Without either they have none.
func (s *server) authenticator(cfg *config.Config) (*auth.Authenticator, error) {
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

func (s *server) closeAuth() error {
	if s.auth != nil {
		s.auth.Get().Close()
	}
	return nil
}

// localKey returns the key that a gateway on this machine generated: empty without one, and for other machines.
func (p Process) localKey(base string, cfg *config.Config) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", nil
	}
	host, err := origin.ParseHost(u.Host)
	if err != nil || !host.IP.IsLoopback() && host.Name != "localhost" {
		return "", nil
	}
	dir, err := p.dataDir(cfg)
	if err != nil || dir == "" {
		return "", nil // no folder, no key
	}
	key, err := auth.ReadOperatorKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return key, err
}
