package main

import (
	"voicegw/auth"
	"voicegw/config"
)

// openAuth makes what decides whom the gateway lets in. operatorsKey may be empty.
func (s *server) openAuth(operatorsKey string) error {
	keys, issuers := s.cfg.Auth.Options()
	a, err := auth.New(auth.Options{
		OperatorKey: operatorsKey, Keys: keys, Issuers: issuers, Exposed: !config.Loopback(s.cfg.Listen), Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.auth = auth.Only(a)
	return nil
}

// closeAuth ends what openAuth has begun.
func (s *server) closeAuth() error {
	if s.auth != nil {
		s.auth.Get().Close()
	}
	return nil
}
