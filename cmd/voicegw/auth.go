package main

import (
	"voicegw/config"
	"voicegw/internal/auth"
)

// openAuth makes what decides whom the gateway lets in. operatorsKey may be empty.
func (s *server) openAuth(operatorsKey string) error {
	a, err := s.authenticator(s.cfg, operatorsKey)
	if err != nil {
		return err
	}
	s.auth = auth.Only(a)
	return nil
}

// authenticator makes what decides it by a configuration. The address stays that of the start.
func (s *server) authenticator(cfg *config.Config, operatorsKey string) (*auth.Authenticator, error) {
	keys, issuers := cfg.Auth.Options()
	return auth.New(auth.Options{
		OperatorKey: operatorsKey, Keys: keys, Issuers: issuers, EnforceExpiry: cfg.Auth.EnforceExpiry, Exposed: !config.Loopback(s.cfg.Listen), Logger: s.logger,
	})
}

// closeAuth ends what openAuth has begun.
func (s *server) closeAuth() error {
	if s.auth != nil {
		s.auth.Get().Close()
	}
	return nil
}
