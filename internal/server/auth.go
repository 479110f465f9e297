package server

import (
	"voicegw/config"
	"voicegw/internal/auth"
)

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
