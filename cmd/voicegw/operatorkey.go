package main

import (
	"errors"
	"io/fs"
	"net/url"

	"voicegw/config"
	"voicegw/internal/auth"
	"voicegw/internal/origin"
)

// localKey returns the key of a gateway on this machine, for a command that asks it at base and was
// given no key: the key that the gateway has made in the data folder. It is empty if the file is
// missing, and for any other machine, which must not get this key.
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
		return "", nil // without the folder there is no key
	}
	key, err := auth.ReadOperatorKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return key, err
}

// operatorsKey returns the key that operators must show: the configured one, otherwise the one in
// the data folder; empty if there is neither.
func (s *server) operatorsKey(cfg *config.Config) (string, error) {
	switch {
	case cfg.APIKey.IsSet():
		return cfg.APIKey.Reveal(), nil
	case s.dataDir == "":
		s.logger.Warn("nobody can use the endpoints for operators: there is no api_key, and no data folder to keep one in")
		return "", nil
	}
	return auth.OwnOperatorKey(s.dataDir)
}
